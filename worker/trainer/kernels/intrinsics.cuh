// Operations that only the device's instruction set has, one function per instruction. The tests'
// emulation has functions of the same names (tests/support/cuda_emulation_intrinsics.h).
//
// Fragment layouts: PTX ISA, "Warp-level matrix instructions", mma.m16n8k16 with .bf16; with g =
// lane / 4, t = lane % 4:
//   A (16, 16), row by row:  register r holds row g + 8 (r % 2), columns 2t, 2t+1 + 8 (r / 2)
//   B (16, 8), by columns:   register r holds rows 2t, 2t+1 + 8 r of column g
//   sums (16, 8), float:     number r is row g + 8 (r / 2), column 2t + r % 2
// The first element of a pair is in the lower half of the register.
#pragma once

#include <cstdint>

#include "worker/trainer/kernels/bf16.h"
#include "worker/trainer/kernels/dropout_stream.h"
#include "worker/trainer/kernels/portable.h"

#if !defined(__CUDACC__) && !defined(PELAB_CUDA_EMULATION)
#error "device code: compiled by nvcc, or after tests/support/cuda_emulation.h"
#endif

namespace pelab::trainer {

#if defined(__CUDACC__)

// sum += A B, in float32. All 32 lanes must call it.
__device__ __forceinline__ void MmaBf16(float (&sum)[4], const std::uint32_t (&a)[4],
                                        const std::uint32_t (&b)[2]) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
      "{%8, %9}, {%0, %1, %2, %3};"
      : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

// Loads four (8, 8) matrices of 16-bit elements from shared memory. Lane 8 i + r passes the address
// of row r of matrix i (16 bytes, aligned). Register i holds row lane / 4, columns 2 (lane % 4), +
// 1 of matrix i. All 32 lanes must call it.
__device__ __forceinline__ void LoadMatrix4(std::uint32_t (&to)[4], const void* row) {
  const auto address = static_cast<std::uint32_t>(__cvta_generic_to_shared(row));
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "r"(address)
               : "memory");
}

// The same for the transposed matrices: register i holds rows 2 (lane % 4), + 1 of column lane / 4
// of matrix i.
__device__ __forceinline__ void LoadMatrix4Transposed(std::uint32_t (&to)[4], const void* row) {
  const auto address = static_cast<std::uint32_t>(__cvta_generic_to_shared(row));
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "r"(address)
               : "memory");
}

// Two bfloat16 in one register.
__device__ __forceinline__ std::uint32_t PackBf16(float low, float high) {
  std::uint32_t pair;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  return pair;
}

// 2^x and log2(x), with errors of about 2 ulp and 1e-6; subnormals count as zero.
__device__ __forceinline__ float Exp2(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
__device__ __forceinline__ float Log2(float x) {
  float y;
  asm("lg2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

// Reads shared memory a second time. Keeping the first result in registers would cost more.
__device__ __forceinline__ float4 LoadShared4Again(const float* at) {
  const auto address = static_cast<std::uint32_t>(__cvta_generic_to_shared(at));
  float4 x;
  asm volatile("ld.volatile.shared.v4.f32 {%0, %1, %2, %3}, [%4];"
               : "=f"(x.x), "=f"(x.y), "=f"(x.z), "=f"(x.w)
               : "r"(address)
               : "memory");
  return x;
}

#endif

// Load or store vectors of elements as floats. The address must be aligned to the vector.
__device__ __forceinline__ float4 Load4(const float* at) {
  return *reinterpret_cast<const float4*>(at);
}
__device__ __forceinline__ float4 Load4(const Bf16* at) {
  const uint2 pairs = *reinterpret_cast<const uint2*>(at);
  return make_float4(__uint_as_float(pairs.x << 16), __uint_as_float(pairs.x & 0xffff0000U),
                     __uint_as_float(pairs.y << 16), __uint_as_float(pairs.y & 0xffff0000U));
}
__device__ __forceinline__ void Store4(float* at, float4 x) { *reinterpret_cast<float4*>(at) = x; }
__device__ __forceinline__ void Store4(Bf16* at, float4 x) {
  *reinterpret_cast<uint2*>(at) = make_uint2(PackBf16(x.x, x.y), PackBf16(x.z, x.w));
}

}  // namespace pelab::trainer
