// The names: PEs, tasks, protocols and analyses, in the order in which `pelab catalog` lists them.
#include "core/catalog/catalog.h"

namespace pelab::catalog {

const std::vector<Entry>& Pes() {
  static const std::vector<Entry> entries = {
      {"nope", 1, "no positional encoding: order is visible only through the causal mask",
       "Kazemnejad et al. 2023, arXiv 2305.19466"},
      {"absolute", 1,
       "a vector per position is added to the token embeddings: sinusoidal or learned",
       "Vaswani et al. 2017, section 3.5"},
      {"random", 1, "a random normal vector per position is added to the token embeddings",
       "arXiv 2505.13027, section 4"},
      {"relative", 1, "a learned bias per head and distance is added to the attention logits",
       "Raffel et al. 2020 (T5), section 2.1"},
      {"alibi", 1, "a fixed penalty proportional to the distance is added to the attention logits",
       "Press et al. 2022, section 3"},
      {"rope", 1, "queries and keys are rotated by angles proportional to their positions",
       "Su et al. 2021, section 3.2"},
  };
  return entries;
}

const std::vector<Entry>& Tasks() {
  static const std::vector<Entry> entries = {
      {"distance", 1, "classify the distance between two trigger words: needs position and content",
       "arXiv 2505.13027, task 1"},
      {"counting", 1, "classify how many trigger words there are: needs content alone",
       "arXiv 2505.13027, task 2"},
  };
  return entries;
}

const std::vector<Entry>& Protocols() {
  static const std::vector<Entry> entries = {
      {"clean", 0,
       "what the paper describes, with known confounds removed: causal, padded tokens masked, "
       "exact labels",
       "arXiv 2505.13027, sections 3 and 4"},
      {"published", 0, "what the authors' released code does, switch by switch",
       "Deposit-Pattern-Research, trans.py, data-gen.py"},
  };
  return entries;
}

const std::vector<Entry>& Analyses() {
  static const std::vector<Entry> entries = {
      {"head_ablation", 1, "test accuracy with each attention head's output taken away in turn",
       "arXiv 2505.13027, section 5"},
  };
  return entries;
}

}  // namespace pelab::catalog
