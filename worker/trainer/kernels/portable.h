// Makes one source compile with nvcc, with the host compiler alone, and under the tests' emulation
// on the host (tests/support/cuda_emulation.h, included before any device code).
#pragma once

#if defined(__CUDACC__)
#define PELAB_HOST_DEVICE __host__ __device__ __forceinline__
#else
#define PELAB_HOST_DEVICE inline __attribute__((always_inline))
#endif

// Shared memory of a block. The emulation gives each variable its own memory and poisons it before
// every block. Kernels therefore declare variables with these macros and not with __shared__.
//   PELAB_SHARED(type, name, count)    type name[count]
//   PELAB_DYNAMIC_SHARED(type, name)   type* name: all dynamic bytes of the launch, aligned to 16
//   PELAB_GRID_CONSTANT                before a struct parameter of a kernel: it may be taken by
//                                      reference without a copy
#if defined(__CUDACC__)
#define PELAB_GRID_CONSTANT const __grid_constant__
#define PELAB_SHARED(type, name, count) __shared__ __align__(16) type name[count]
#define PELAB_DYNAMIC_SHARED(type, name)                                \
  extern __shared__ __align__(16) unsigned char pelab_dynamic_shared[]; \
  type* const name = reinterpret_cast<type*>(pelab_dynamic_shared)
#else  // under emulation; not used elsewhere
#define PELAB_GRID_CONSTANT const
// A type cannot stand in parentheses. NOLINTBEGIN(bugprone-macro-parentheses)
#define PELAB_SHARED(type, name, count)                                        \
  type* const name = static_cast<type*>(pelab::cuda_emulation::SharedVariable( \
      [] {                                                                     \
        static const char tag = 0;                                             \
        return &tag;                                                           \
      }(),                                                                     \
      sizeof(type) * (count)))
#define PELAB_DYNAMIC_SHARED(type, name) \
  type* const name = static_cast<type*>(pelab::cuda_emulation::DynamicShared())
// NOLINTEND(bugprone-macro-parentheses)
#endif

struct CUstream_st;  // the CUDA driver's stream

namespace pelab::trainer {

using CudaStream = CUstream_st*;

// The result of a launcher: null, or the CUDA runtime's text for the error.
using KernelError = const char*;

}  // namespace pelab::trainer
