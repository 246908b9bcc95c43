// Vectors of 16 floats for the CPU kernels, and the choice of the instruction set at run time. With
// every instruction set, lanes are processed in the same order. Results may differ in the last
// bits, because some sets multiply and add with one rounding.
//
// Every function is inlined into the code that RunWidest compiles for each instruction set, so that
// no vector is passed in a call.
#pragma once

#include <cstdint>
#include <cstring>

#include "worker/trainer/kernels/dropout_stream.h"

#define PELAB_INLINE inline __attribute__((always_inline))
#define PELAB_INLINE_LAMBDA __attribute__((always_inline))

namespace pelab::trainer {

inline constexpr std::int64_t kLanes = 16;
typedef float Floats __attribute__((vector_size(kLanes * 4)));
typedef std::int32_t Ints __attribute__((vector_size(kLanes * 4)));
typedef std::uint32_t Unsigneds __attribute__((vector_size(kLanes * 4)));

// Load and Store need only the alignment of float.
PELAB_INLINE Floats Load(const float* from) {
  Floats x;
  std::memcpy(&x, from, sizeof x);
  return x;
}
PELAB_INLINE void Store(const Floats& x, float* to) { std::memcpy(to, &x, sizeof x); }

inline std::int64_t Padded(std::int64_t n) { return (n + kLanes - 1) / kLanes * kLanes; }

// e^x for x <= 0, with an error of about 2 ulp: 2^n e^r with |r| <= ln(2)/2 and Cephes' polynomial
// for e^r. 0 below -87.
PELAB_INLINE Floats Exp(Floats x) {
  const Ints tiny = x < -87.0f;
  x = tiny ? Floats{} - 87.0f : x;
  const Floats scaled = x * 1.44269504088896341f;
  // Rounds toward 0; since x <= 0, the result is the nearest integer.
  const Ints whole = __builtin_convertvector(scaled - 0.5f, Ints);
  const Floats n = __builtin_convertvector(whole, Floats);
  const Floats r = x - n * 0.693359375f - n * -2.12194440e-4f;
  Floats y = r * 1.9875691500e-4f + 1.3981999507e-3f;
  y = y * r + 8.3334519073e-3f;
  y = y * r + 4.1665795894e-2f;
  y = y * r + 1.6666665459e-1f;
  y = y * r + 5.0000001201e-1f;
  y = y * r * r + r + 1.0f;
  const Ints bits = (whole + 127) << 23;
  Floats power;
  std::memcpy(&power, &bits, sizeof power);
  return tiny ? Floats{} : y * power;
}

// The numbers 0 … 15.
PELAB_INLINE Floats Lanes() {
  Floats lanes;
  for (int i = 0; i < kLanes; ++i) lanes[i] = static_cast<float>(i);
  return lanes;
}

// x[from[0]], x[from[1]], ….
PELAB_INLINE Floats Shuffled(Floats x, Ints from) {
#ifdef __clang__
  Floats shuffled;
  for (int i = 0; i < kLanes; ++i) shuffled[i] = x[from[i]];
  return shuffled;
#else
  return __builtin_shuffle(x, from);
#endif
}

// The same of the 32 lanes of x and y.
PELAB_INLINE Floats Shuffled(Floats x, Floats y, Ints from) {
#ifdef __clang__
  Floats shuffled;
  for (int i = 0; i < kLanes; ++i) {
    shuffled[i] = from[i] < kLanes ? x[from[i]] : y[from[i] - kLanes];
  }
  return shuffled;
#else
  return __builtin_shuffle(x, y, from);
#endif
}

// x with lane i in the place of lane i xor `kDistance`.
template <int kDistance>
PELAB_INLINE Floats Exchanged(Floats x) {
  Ints from;
  for (int i = 0; i < kLanes; ++i) from[i] = i ^ kDistance;
  return Shuffled(x, from);
}

// The sum over all lanes, pair by pair.
PELAB_INLINE float Sum(Floats x) {
  x += Exchanged<8>(x);
  x += Exchanged<4>(x);
  x += Exchanged<2>(x);
  return x[0] + x[1];
}

PELAB_INLINE Floats Larger(Floats x, Floats y) { return x > y ? x : y; }

PELAB_INLINE float Largest(Floats x) {
  x = Larger(x, Exchanged<8>(x));
  x = Larger(x, Exchanged<4>(x));
  x = Larger(x, Exchanged<2>(x));
  return x[0] > x[1] ? x[0] : x[1];
}

// 1/(1-p) or 0 for the elements index … index + 15 of a dropout stream: like DropoutFactor for 16
// elements.
PELAB_INLINE Floats DropoutFactors(const DropoutStream& stream, std::uint32_t index) {
  Unsigneds at;
  for (int i = 0; i < kLanes; ++i) at[i] = static_cast<std::uint32_t>(i);
  at += stream.first + index;
  const Unsigneds bits = DropoutBits(stream.key0, stream.key1, at);
  const Ints dropped = bits < stream.threshold;
  return dropped ? Floats{} : Floats{} + stream.kept;
}

enum class InstructionSet { kBaseline, kAvx2, kAvx512 };

inline InstructionSet WidestInstructionSet() {
#if defined(__x86_64__) && defined(__GNUC__)
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl")) {
    return InstructionSet::kAvx512;
  }
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
    return InstructionSet::kAvx2;
  }
#endif
  return InstructionSet::kBaseline;
}

#if defined(__x86_64__) && defined(__GNUC__)
template <class Body>
__attribute__((target("avx2,fma"), noinline)) void RunOnAvx2(const Body& body) {
  body();
}
template <class Body>
__attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma"), noinline)) void RunOnAvx512(
    const Body& body) {
  body();
}
#endif

// Runs body() with the widest instruction set of this processor. `body` is a lambda marked
// PELAB_INLINE_LAMBDA.
template <class Body>
void RunWidest(const Body& body) {
#if defined(__x86_64__) && defined(__GNUC__)
  static const InstructionSet widest = WidestInstructionSet();
  if (widest == InstructionSet::kAvx512) return RunOnAvx512(body);
  if (widest == InstructionSet::kAvx2) return RunOnAvx2(body);
#endif
  body();
}

}  // namespace pelab::trainer
