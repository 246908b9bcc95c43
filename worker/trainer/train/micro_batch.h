// The default micro-batch: how many examples of a batch go through the model at a time.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "worker/trainer/config/config.h"

namespace pelab::trainer {

// The approximate memory, in bytes, that the backward pass needs for one example of `length` tokens
// in float32.
std::int64_t ActivationBytes(const ModelConfig& config, std::int64_t length);

// On a CPU, splits a batch into parts whose sizes differ little and whose activations stay within
// 256 MiB, and returns the size of a part. A job of the paper's size then needs half a gigabyte,
// whatever its batch size. Returns 0 (the whole batch) if the whole batch fits, and on a GPU. The
// result depends only on the job and the kind of device, so results do not depend on the host.
std::int64_t ChooseMicroBatch(const ModelConfig& config, std::int64_t length, std::int64_t batch,
                              at::Device device);

}  // namespace pelab::trainer
