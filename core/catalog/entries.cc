// The names of PEs, tasks, protocols and analyses, in the order in which `pelab catalog` lists
// them.
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
      {"shaw", 1,
       "learned vectors per clipped distance are added to the keys, and to the values if asked",
       "Shaw et al. 2018, arXiv 1803.02155, section 3"},
      {"alibi", 1, "a fixed penalty proportional to the distance is added to the attention logits",
       "Press et al. 2022, section 3", /*heads_differ=*/true},
      {"rope", 1, "queries and keys are rotated by angles proportional to their positions",
       "Su et al. 2021, section 3.2"},
      {"xpos", 1,
       "rope whose logits decay with the distance, the faster the higher the frequency; causal "
       "only",
       "Sun et al. 2022, arXiv 2212.10554, section 3.1", /*heads_differ=*/false,
       "the scales of xpos grow without bound for keys after the query"},
      {"partial_rope", 1, "rope on some of the heads; the others have no positional encoding",
       "arXiv 2505.13027, section 5", /*heads_differ=*/true},
      {"rope_abs", 1, "rope, and a sinusoid added to the token embeddings",
       "arXiv 2505.13027, section 5"},
      {"mla", 1,
       "multi-head latent attention: content from low-rank latents, position from a few rotated "
       "channels whose keys all heads share",
       "DeepSeek-AI 2024, arXiv 2405.04434, section 2.1"},
  };
  return entries;
}

const Entry& OwnPe() {
  static const Entry entry = {"own", 1, "an encoding of your own, from a TorchScript file",
                              "docs/own-encodings.md"};
  return entry;
}

namespace {

std::vector<Entry> With(std::vector<Entry> entries, const Entry& own) {
  entries.push_back(own);
  return entries;
}

}  // namespace

const std::vector<Entry>& PesAndOwn() {
  static const std::vector<Entry> all = With(Pes(), OwnPe());
  return all;
}

const std::vector<Entry>& TasksAndOwn() {
  static const std::vector<Entry> all = With(Tasks(), OwnTask());
  return all;
}

const Entry& OwnTask() {
  static const Entry entry = {"own", 1, "data of your own, from a safetensors file",
                              "docs/own-data.md"};
  return entry;
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
       "what the paper describes, without most confounds of the authors' code: causal, padding "
       "masked, exact labels; AdamW's betas stay the authors' (0.98, 0.9), and the mean over "
       "tokens is read",
       "arXiv 2505.13027, sections 3 and 4"},
      {"published", 0, "what the authors' released code does, switch by switch",
       "Deposit-Pattern-Research, trans.py, data-gen.py"},
      {"matched", 0,
       "clean, with AdamW's usual betas and the last token read: nothing but the encoding differs "
       "between jobs, and nothing that is known to favor one of them is kept",
       "docs/reproduction.md, AdamW's betas"},
  };
  return entries;
}

const std::vector<Entry>& Analyses() {
  static const std::vector<Entry> entries = {
      {"head_ablation", 2, "test accuracy with each attention head's output taken away in turn",
       "arXiv 2505.13027, section 5"},
      {"layer_ablation", 1, "test accuracy with all heads of a layer taken away, layer by layer",
       "as head_ablation, for whole layers"},
      {"cumulative_ablation", 1,
       "test accuracy as heads are taken away one after another: greedily, and in random orders",
       "as head_ablation, for growing sets of heads"},
      {"example_correctness", 1,
       "which test examples the model has right, to compare two models example by example",
       "McNemar 1947"},
      {"split_accuracy", 1,
       "accuracy on the training examples, the test set and every other split of own data",
       "docs/own-data.md"},
  };
  return entries;
}

}  // namespace pelab::catalog
