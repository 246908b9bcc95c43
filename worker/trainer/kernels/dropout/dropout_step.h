// Dropout of a training step on CUDA: the keys of all of its places, made on the device from the device's own count of
// steps, so that a graph of the step can be launched again and again; and whole masks, for paths that multiply by one.
//
// The keys are those of Dropout (model/dropout.h): the words of CounterRandom(seed, "dropout", step) at a place's address.
#pragma once

#include <cstdint>

#include "core/base/random.h"
#include "worker/trainer/kernels/dropout_stream.h"
#include "worker/trainer/kernels/portable.h"

namespace pelab::trainer {

// As CounterRandom makes it.
inline std::uint64_t DropoutSeedKey(std::int64_t seed) {
  return Mix64(Mix64(static_cast<std::uint64_t>(seed) + 0x9E3779B97F4A7C15) ^ PurposeId("dropout"));
}

struct DropoutStep {
  std::int64_t members = 1;                  // M (members.h)
  const std::uint64_t* seed_keys = nullptr;  // on the device, (M): DropoutSeedKey of each
  std::int64_t places = 0;                   // layers times kinds of places
  std::int64_t* step = nullptr;              // on the device, (M): the step before; then this one
  // On the device, (M, places, 2): where the DropoutStream of place i has its keys, keys + 2 i.
  std::uint32_t* keys = nullptr;
};

// Begins a step: counts it and makes its keys. Queued on `stream` before everything else of the step; before the first of
// all, every step is -1, and after a checkpoint the last step done.
KernelError BeginDropoutStepOnCuda(const DropoutStep& step, CudaStream stream);

// mask (M, count): mask[i] of a member = the factor of element i, 0 <= i < count <= 2^32: the bits of FillDropoutMask. 4 bytes
// written an element.
KernelError FillDropoutMaskOnCuda(const DropoutStream& stream_of_place, std::int64_t members,
                                  std::int64_t count, float* mask, CudaStream stream);

}  // namespace pelab::trainer
