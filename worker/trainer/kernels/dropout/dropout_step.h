// Dropout of a training step on CUDA. The keys of all places are made on the device from the
// device's own step count, so that a graph of the step can be launched again and again. For paths
// that multiply by a mask there are also whole masks.
//
// The keys are those of Dropout (model/dropout.h): the words of CounterRandom(seed, "dropout",
// step) at a place's address.
#pragma once

#include <cstdint>

#include "core/base/random.h"
#include "worker/trainer/kernels/dropout_stream.h"
#include "worker/trainer/kernels/portable.h"

namespace pelab::trainer {

// The key that CounterRandom makes for a seed.
inline std::uint64_t DropoutSeedKey(std::int64_t seed) {
  return Mix64(Mix64(static_cast<std::uint64_t>(seed) + 0x9E3779B97F4A7C15) ^ PurposeId("dropout"));
}

struct DropoutStep {
  std::int64_t members = 1;                  // M (members.h)
  const std::uint64_t* seed_keys = nullptr;  // on the device, (M): DropoutSeedKey of each
  std::int64_t places = 0;                   // layers times dropout sites
  std::int64_t* step = nullptr;  // on the device, (M): the previous step; afterwards this step
  // On the device, (M, places, 2). The DropoutStream of place i has its keys at keys + 2 i.
  std::uint32_t* keys = nullptr;
};

// Begins a step: advances the step count and makes its keys. Queue it on `stream` before all other
// work of the step. Before the first step, every count must be -1; after resuming from a
// checkpoint, it must be the last completed step.
KernelError BeginDropoutStepOnCuda(const DropoutStep& step, CudaStream stream);

// mask (M, count): for each member, mask[i] = the factor of element i, 0 <= i < count <= 2^32. The
// bits are those of FillDropoutMask. Writes 4 bytes per element.
KernelError FillDropoutMaskOnCuda(const DropoutStream& stream_of_place, std::int64_t members,
                                  std::int64_t count, float* mask, CudaStream stream);

}  // namespace pelab::trainer
