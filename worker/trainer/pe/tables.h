// The numbers behind the PEs, without LibTorch, so that each can be held against an independent computation.
#pragma once

#include <cstdint>
#include <vector>

namespace pelab::trainer {

// base^(-2t/width) for t = 0 … width/2 - 1.
std::vector<double> Frequencies(std::int64_t width, double base);

// How the sine and cosine of a frequency lie in a vector.
enum class SinusoidLayout {
  kInterleaved,  // sin, cos, sin, cos, … (Vaswani et al. 2017, section 3.5)
  kHalfSplit,    // all sines, then all cosines
};
// (length, width), row-major: sin and cos of t * base^(-2i/width). An odd width ends in a sine.
std::vector<double> Sinusoid(std::int64_t length, std::int64_t width, double base,
                             SinusoidLayout layout);

// 2^(-8h/H) for h = 1 … H; where H is no power of two, the slopes of the power below it, then every other slope of the
// power above it (Press et al. 2022, reference implementation).
std::vector<double> GeometricSlopes(std::int64_t heads);
// e^(-h/H) for h = 0 … H-1.
std::vector<double> ExponentialSlopes(std::int64_t heads);

// T5's bucket of key position j seen from query position i, `relative` = j - i (Raffel et al. 2020, section 2.1).
// Causal: n = max(-relative, 0) has its own bucket below buckets/2, logarithmic ones up to max_distance above, future keys
// share bucket 0. Bidirectional: half of the buckets a sign, future keys in the upper half.
std::int64_t T5Bucket(std::int64_t relative, bool causal, std::int64_t buckets,
                      std::int64_t max_distance);

}  // namespace pelab::trainer
