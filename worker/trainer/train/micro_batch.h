// How many examples of a batch go through the model at a time, where nobody has said.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "worker/trainer/config/config.h"

namespace pelab::trainer {

// What the backward pass keeps of one example of `length` tokens, about: bytes, in float32.
std::int64_t ActivationBytes(const ModelConfig& config, std::int64_t length);

// On a CPU parts of equal size, within one example, whose activations stay within 256 MiB, so that a
// job of the paper's size needs half a gigabyte whatever its batch; 0, for the whole batch, where
// that has room, and on a GPU. A function of the job and the kind of device alone: results do not
// depend on the host.
std::int64_t ChooseMicroBatch(const ModelConfig& config, std::int64_t length, std::int64_t batch,
                              at::Device device);

}  // namespace pelab::trainer
