// Vectors of 16 floats for the CPU kernels, and the choice of the instruction set at run time. With
// every instruction set, lanes are processed in the same order. Results may differ in the last
// bits, because some sets multiply and add with one rounding.
//
// A processor's registers hold 16, 8 or 4 floats. The compiler keeps a vector in registers only if
// it is as wide as they are; of a wider one it stores every intermediate value in memory. So the
// kernels are templates of the type `Floats`: one register of 16, two of 8, or four of 4.
//
// Every function is inlined into the code that RunWidest compiles for each instruction set, so that
// no vector is passed in a call.
#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "worker/trainer/kernels/dropout_stream.h"

#define PELAB_INLINE inline __attribute__((always_inline))
#define PELAB_INLINE_LAMBDA __attribute__((always_inline))

namespace pelab::trainer {

inline constexpr std::int64_t kLanes = 16;
inline std::int64_t Padded(std::int64_t n) { return (n + kLanes - 1) / kLanes * kLanes; }

// kCount elements in one register.
template <class Element, int kCount>
struct RegisterOf {
  typedef Element Type __attribute__((vector_size(kCount * sizeof(Element))));
};
template <class Element, int kCount>
using Register = typename RegisterOf<Element, kCount>::Type;

// A vector in two halves, each of which is a register or has halves itself.
template <class Half>
struct Halves {
  Half low, high;
};
template <class Half>
PELAB_INLINE Halves<Half> Joined(Half low, Half high) {
  return {low, high};
}
template <class Vector>
inline constexpr bool kHasHalves = false;
template <class Half>
inline constexpr bool kHasHalves<Halves<Half>> = true;

using Floats16 = Register<float, 16>;
using Floats2x8 = Halves<Register<float, 8>>;
using Floats4x4 = Halves<Halves<Register<float, 4>>>;

// The vector of other elements that has the shape of Vector.
template <class Vector, class Element>
struct ShapedLike {
  using Type = Register<Element, sizeof(Vector) / sizeof(Element)>;
};
template <class Half, class Element>
struct ShapedLike<Halves<Half>, Element> {
  using Type = Halves<typename ShapedLike<Half, Element>::Type>;
};
template <class Floats>
using IntsOf = typename ShapedLike<Floats, std::int32_t>::Type;
template <class Floats>
using UnsignedsOf = typename ShapedLike<Floats, std::uint32_t>::Type;

template <class Vector>
inline constexpr std::int64_t kLanesOf = sizeof(Vector) / sizeof(float);
// n, rounded up to whole vectors.
template <class Vector>
std::int64_t PaddedTo(std::int64_t n) {
  return (n + kLanesOf<Vector> - 1) / kLanesOf<Vector> * kLanesOf<Vector>;
}

// The operators that registers have, half by half. One side may be a scalar.
#define PELAB_OPERATOR(op)                                                                     \
  template <class Half, class Other>                                                           \
  PELAB_INLINE auto operator op(const Halves<Half>& x, const Halves<Other>& y) {               \
    return Joined(x.low op y.low, x.high op y.high);                                           \
  }                                                                                            \
  template <class Half, class Scalar>                                                          \
  requires std::is_arithmetic_v<Scalar> PELAB_INLINE auto operator op(const Halves<Half>& x,   \
                                                                      Scalar y) {              \
    return Joined(x.low op y, x.high op y);                                                    \
  }                                                                                            \
  template <class Half, class Scalar>                                                          \
  requires std::is_arithmetic_v<Scalar> PELAB_INLINE auto operator op(Scalar x,                \
                                                                      const Halves<Half>& y) { \
    return Joined(x op y.low, x op y.high);                                                    \
  }
#define PELAB_ASSIGNMENT(op)                                                   \
  template <class Half, class Other>                                           \
  PELAB_INLINE Halves<Half>& operator op##=(Halves<Half>& x, const Other& y) { \
    return x = x op y;                                                         \
  }
PELAB_OPERATOR(+)
PELAB_OPERATOR(-)
PELAB_OPERATOR(*)
PELAB_OPERATOR(/)
PELAB_OPERATOR(^)
PELAB_OPERATOR(<<)
PELAB_OPERATOR(>>)
PELAB_OPERATOR(<)
PELAB_OPERATOR(>)
PELAB_ASSIGNMENT(+)
PELAB_ASSIGNMENT(-)
PELAB_ASSIGNMENT(*)
PELAB_ASSIGNMENT(^)
#undef PELAB_OPERATOR
#undef PELAB_ASSIGNMENT
template <class Half>
PELAB_INLINE Halves<Half> operator-(const Halves<Half>& x) {
  return {-x.low, -x.high};
}

// Load and Store need only the alignment of an element.
template <class Vector, class Element>
PELAB_INLINE Vector Load(const Element* from) {
  Vector x;
  if constexpr (kHasHalves<Vector>) {
    constexpr std::size_t kHalf = sizeof(Vector) / sizeof(Element) / 2;
    x.low = Load<decltype(x.low)>(from);
    x.high = Load<decltype(x.high)>(from + kHalf);
  } else {
    std::memcpy(&x, from, sizeof x);
  }
  return x;
}
template <class Vector, class Element>
PELAB_INLINE void Store(const Vector& x, Element* to) {
  if constexpr (kHasHalves<Vector>) {
    Store(x.low, to);
    Store(x.high, to + sizeof(Vector) / sizeof(Element) / 2);
  } else {
    std::memcpy(to, &x, sizeof x);
  }
}

// mask ? x : y, where `mask` is the result of a comparison.
template <class Mask, class Floats>
PELAB_INLINE Floats Chosen(const Mask& mask, const Floats& x, const Floats& y) {
  if constexpr (kHasHalves<Floats>) {
    return {Chosen(mask.low, x.low, y.low), Chosen(mask.high, x.high, y.high)};
  } else {
    return mask ? x : y;
  }
}
template <class Floats>
PELAB_INLINE Floats Larger(const Floats& x, const Floats& y) {
  return Chosen(x > y, x, y);
}

// The elements as those of To, by value.
template <class To, class From>
PELAB_INLINE To Converted(const From& x) {
  if constexpr (kHasHalves<To>) {
    return {Converted<decltype(To::low)>(x.low), Converted<decltype(To::high)>(x.high)};
  } else {
    return __builtin_convertvector(x, To);
  }
}
// The same bits as those of To.
template <class To, class From>
PELAB_INLINE To SameBits(const From& x) {
  static_assert(sizeof(To) == sizeof(From));
  if constexpr (kHasHalves<To>) {
    return {SameBits<decltype(To::low)>(x.low), SameBits<decltype(To::high)>(x.high)};
  } else {
    To y;
    std::memcpy(&y, &x, sizeof y);
    return y;
  }
}

// e^x for x <= 0, with an error of about 2 ulp: 2^n e^r with |r| <= ln(2)/2 and Cephes' polynomial
// for e^r. 0 below -87.
template <class Floats>
PELAB_INLINE Floats Exp(Floats x) {
  const auto tiny = x < -87.0f;
  x = Chosen(tiny, Floats{} - 87.0f, x);
  const Floats scaled = x * 1.44269504088896341f;
  // Rounds toward 0; since x <= 0, the result is the nearest integer.
  const auto whole = Converted<IntsOf<Floats>>(scaled - 0.5f);
  const Floats n = Converted<Floats>(whole);
  const Floats r = x - n * 0.693359375f - n * -2.12194440e-4f;
  Floats y = r * 1.9875691500e-4f + 1.3981999507e-3f;
  y = y * r + 8.3334519073e-3f;
  y = y * r + 4.1665795894e-2f;
  y = y * r + 1.6666665459e-1f;
  y = y * r + 5.0000001201e-1f;
  y = y * r * r + r + 1.0f;
  const Floats power = SameBits<Floats>((whole + 127) << 23);
  return Chosen(tiny, Floats{}, y * power);
}

// The numbers 0 … 15.
template <class Vector>
PELAB_INLINE Vector Lanes() {
  using Element =
      std::conditional_t<std::is_same_v<Vector, UnsignedsOf<Vector>>, std::uint32_t, float>;
  constexpr Element kNumbers[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
  return Load<Vector>(kNumbers);
}

// Lane i of a register from lane kFrom(i) of x and y, one behind the other.
template <class From, class Vector>
PELAB_INLINE Vector Shuffled(const Vector& x, const Vector& y, From from) {
  constexpr int kCount = sizeof(Vector) / sizeof(float);
#ifdef __clang__
  Vector shuffled;
  for (int i = 0; i < kCount; ++i) {
    shuffled[i] = from(i) < kCount ? x[from(i)] : y[from(i) - kCount];
  }
  return shuffled;
#else
  Register<std::int32_t, kCount> lanes;
  for (int i = 0; i < kCount; ++i) lanes[i] = from(i);
  return __builtin_shuffle(x, y, lanes);
#endif
}

// Two registers as one of twice their width, and the halves of a register.
PELAB_INLINE Register<float, 8> SideBySide(Register<float, 4> low, Register<float, 4> high) {
  return __builtin_shufflevector(low, high, 0, 1, 2, 3, 4, 5, 6, 7);
}
PELAB_INLINE Register<float, 16> SideBySide(Register<float, 8> low, Register<float, 8> high) {
  return __builtin_shufflevector(low, high, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
}
PELAB_INLINE Register<float, 4> LowerHalf(Register<float, 8> x) {
  return __builtin_shufflevector(x, x, 0, 1, 2, 3);
}
PELAB_INLINE Register<float, 4> UpperHalf(Register<float, 8> x) {
  return __builtin_shufflevector(x, x, 4, 5, 6, 7);
}
PELAB_INLINE Register<float, 8> LowerHalf(Register<float, 16> x) {
  return __builtin_shufflevector(x, x, 0, 1, 2, 3, 4, 5, 6, 7);
}
PELAB_INLINE Register<float, 8> UpperHalf(Register<float, 16> x) {
  return __builtin_shufflevector(x, x, 8, 9, 10, 11, 12, 13, 14, 15);
}

// x with lane i in the place of lane i xor `kDistance`.
template <int kDistance, class Floats>
PELAB_INLINE Floats Exchanged(const Floats& x) {
  if constexpr (kHasHalves<Floats>) {
    if constexpr (kDistance * sizeof(float) == sizeof(Floats) / 2) {
      return {x.high, x.low};
    } else {
      return {Exchanged<kDistance>(x.low), Exchanged<kDistance>(x.high)};
    }
  } else {
    return Shuffled(x, x, [](int i) PELAB_INLINE_LAMBDA { return i ^ kDistance; });
  }
}

// Lane `kLane`.
template <int kLane, class Floats>
PELAB_INLINE float At(const Floats& x) {
  if constexpr (kHasHalves<Floats>) {
    constexpr int kHalf = sizeof(Floats) / sizeof(float) / 2;
    if constexpr (kLane < kHalf) {
      return At<kLane>(x.low);
    } else {
      return At<kLane - kHalf>(x.high);
    }
  } else {
    return x[kLane];
  }
}

// The sum over all lanes, pair by pair.
template <class Floats>
PELAB_INLINE float Sum(Floats x) {
  x += Exchanged<8>(x);
  x += Exchanged<4>(x);
  x += Exchanged<2>(x);
  return At<0>(x) + At<1>(x);
}

template <class Floats>
PELAB_INLINE float Largest(Floats x) {
  x = Larger(x, Exchanged<8>(x));
  x = Larger(x, Exchanged<4>(x));
  x = Larger(x, Exchanged<2>(x));
  return At<0>(x) > At<1>(x) ? At<0>(x) : At<1>(x);
}

// 1/(1-p) or 0 for the elements index … index + 15 of a dropout stream: like DropoutFactor for 16
// elements.
template <class Floats>
PELAB_INLINE Floats DropoutFactors(const DropoutStream& stream, std::uint32_t index) {
  const auto at = Lanes<UnsignedsOf<Floats>>() + (stream.first + index);
  const auto dropped = DropoutBits(stream.key0, stream.key1, at) < stream.threshold;
  return Chosen(dropped, Floats{}, Floats{} + stream.kept);
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

// The instruction set that RunWidest uses. Tests choose narrower ones, before threads compute.
inline InstructionSet& ChosenInstructionSet() {
  static InstructionSet chosen = WidestInstructionSet();
  return chosen;
}

#if defined(__x86_64__) && defined(__GNUC__)
template <class Body>
__attribute__((target("avx2,fma"), noinline)) void RunOnAvx2(const Body& body) {
  body.template operator()<Floats2x8>();
}
template <class Body>
__attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma"), noinline)) void RunOnAvx512(
    const Body& body) {
  body.template operator()<Floats16>();
}
#endif

// Runs body.operator()<Floats>() with the widest instruction set of this processor. `body` is a
// lambda [&]<class Floats>() marked PELAB_INLINE_LAMBDA.
template <class Body>
void RunWidest(const Body& body) {
#if defined(__x86_64__) && defined(__GNUC__)
  const InstructionSet widest = ChosenInstructionSet();
  if (widest == InstructionSet::kAvx512) return RunOnAvx512(body);
  if (widest == InstructionSet::kAvx2) return RunOnAvx2(body);
#endif
  body.template operator()<Floats4x4>();
}

}  // namespace pelab::trainer
