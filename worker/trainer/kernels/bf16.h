// bfloat16: the upper half of a 32-bit float. Used for storage; sums are never computed in it.
#pragma once

#include <cstdint>
#include <cstring>

#include "worker/trainer/kernels/portable.h"

namespace pelab::trainer {

struct Bf16 {
  std::uint16_t bits;
};
static_assert(sizeof(Bf16) == 2);

PELAB_HOST_DEVICE float ToFloat(float x) { return x; }
PELAB_HOST_DEVICE float ToFloat(Bf16 x) {
#if defined(__CUDA_ARCH__)
  return __uint_as_float(static_cast<std::uint32_t>(x.bits) << 16);
#else
  const std::uint32_t bits = static_cast<std::uint32_t>(x.bits) << 16;
  float value = 0;
  std::memcpy(&value, &bits, sizeof value);
  return value;
#endif
}

// Rounds to the nearest value, ties to even. Every NaN becomes 0x7fff, as in the hardware's
// conversion.
PELAB_HOST_DEVICE Bf16 ToBf16(float x) {
#if defined(__CUDA_ARCH__)
  std::uint16_t rounded;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(rounded) : "f"(x));
  return {rounded};
#else
  std::uint32_t bits = 0;
  std::memcpy(&bits, &x, sizeof bits);
  if ((bits & 0x7fffffffU) > 0x7f800000U) return {0x7fff};
  return {static_cast<std::uint16_t>((bits + 0x7fffU + ((bits >> 16) & 1U)) >> 16)};
#endif
}

// Stores x in the storage type, for templates over that type.
PELAB_HOST_DEVICE void SetElement(float* to, float x) { *to = x; }
PELAB_HOST_DEVICE void SetElement(Bf16* to, float x) { *to = ToBf16(x); }

}  // namespace pelab::trainer
