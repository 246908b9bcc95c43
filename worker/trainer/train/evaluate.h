// Loss and number of correct predictions of a decoder, without dropout.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "worker/trainer/model/decoder.h"
#include "worker/trainer/train/batches.h"

namespace pelab::trainer {

struct Score {
  double loss = 0;  // mean over the scored examples, in nats
  std::int64_t correct = 0;
  std::int64_t total = 0;  // scored examples
};

// Counts on the device without synchronizing it: (correct, scored) as one 64-bit tensor of two
// elements. The prediction is the class with the largest logit; of equal logits the lowest class
// counts.
at::Tensor CountCorrect(const at::Tensor& logits, const at::Tensor& classes,
                        std::int64_t ignored_class);

// The number of examples per evaluation pass. It is chosen so that the attention weights of one
// layer (and its feed-forward activations), repeated for `variants`, fit a limit for the kind of
// device: a CPU's cache, or as much of a GPU's memory as keeps the GPU busy. It depends only on the
// configuration, the length, the number of variants and the kind of device, so results do not
// depend on the host.
std::int64_t ChunkExamples(const ModelConfig& config, std::int64_t length, std::int64_t variants,
                           at::Device device);

// Calls `visit` with chunks (ChunkExamples) of examples [begin, end) of each member. Chunks are in
// the order of the examples, or longest first if padding is left out (sections.h). Throws Stopped
// between chunks if a stop was requested.
void ForChunks(const Decoder& decoder, const DeviceData& data, std::int64_t begin, std::int64_t end,
               const std::function<void(const LabeledBatch&)>& visit);

// Evaluates examples [begin, end) of each member. Throws Stopped between chunks if a stop was
// requested.
std::vector<Score> EvaluateMembers(const Decoder& decoder, const DeviceData& data,
                                   std::int64_t begin, std::int64_t end);
// The same for one member.
Score Evaluate(const Decoder& decoder, const DeviceData& data, std::int64_t begin,
               std::int64_t end);

}  // namespace pelab::trainer
