// Loss and correct predictions of a decoder over examples, dropout off.
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

// Counts on the device, without synchronising it: (correct, scored) as one 64-bit tensor of two. A prediction is the
// largest logit, the lowest class of equal ones.
at::Tensor CountCorrect(const at::Tensor& logits, const at::Tensor& classes,
                        std::int64_t ignored_class);

// Examples that one evaluation pass takes at a time, so that the attention weights of one layer, repeated for
// `variants`, stay within what suits the kind of device: a CPU's cache, or a part of a GPU's memory that is large enough
// to keep it busy. A function of the configuration and the kind of device alone: results do not depend on the host.
std::int64_t ChunkExamples(const ModelConfig& config, std::int64_t length, std::int64_t variants,
                           at::Device device);

// Calls `visit` for examples [begin, end) of each member in chunks (ChunkExamples): in their order, or, where padding is left
// out (sections.h), longest first. Throws Stopped between chunks when a stop was asked for.
void ForChunks(const Decoder& decoder, const DeviceData& data, std::int64_t begin, std::int64_t end,
               const std::function<void(const LabelledBatch&)>& visit);

// Examples [begin, end) of each member. Throws Stopped between chunks when a stop was asked for.
std::vector<Score> EvaluateMembers(const Decoder& decoder, const DeviceData& data,
                                   std::int64_t begin, std::int64_t end);
// … of one.
Score Evaluate(const Decoder& decoder, const DeviceData& data, std::int64_t begin,
               std::int64_t end);

}  // namespace pelab::trainer
