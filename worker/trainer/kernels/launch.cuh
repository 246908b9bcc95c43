// Helpers for launchers.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "worker/trainer/kernels/members.h"
#include "worker/trainer/kernels/portable.h"

namespace pelab::trainer {

// The error of the preceding launch, or null.
inline KernelError LaunchError() {
  const cudaError_t error = cudaGetLastError();
  return error == cudaSuccess ? nullptr : cudaGetErrorString(error);
}

inline unsigned BlocksFor(std::int64_t count, std::int64_t of_a_block) {
  return static_cast<unsigned>((count + of_a_block - 1) / of_a_block);
}

// A grid of `blocks` for each member.
inline dim3 MemberGrid(unsigned blocks, const Members& members) {
  return dim3(blocks, 1, static_cast<unsigned>(members.count));
}

}  // namespace pelab::trainer
