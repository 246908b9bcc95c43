// The numbers behind the PEs, without LibTorch, so that each can be held against an independent computation.
#pragma once

#include <cstdint>
#include <vector>

namespace pelab::trainer {

// base^(-2t/width) for t = 0 … width/2 - 1.
std::vector<double> Frequencies(std::int64_t width, double base);

// Factors by which a pair of channels, read as a complex number, is multiplied: (length, width/2, 2), row-major, each a real
// and an imaginary part. `width` is even.
//
// e^(i t f) for position t and the frequency f of the pair (Su et al. 2021, section 3.2).
std::vector<double> RotaryTurns(std::int64_t length, std::int64_t width, double base);
// The authors' code for multi-head latent attention keeps, for each position, all sines and then all cosines, and reads that
// row's even places as sines and its odd places as cosines. So of pairs b = 0 … width/2 - 1 the first half has, for real and
// imaginary part, the sines of frequencies 2b+1 and 2b, the second half the cosines. These are no rotations: at position 0
// the first half of the pairs vanishes.
std::vector<double> SlicedTurns(std::int64_t length, std::int64_t width, double base);
// (2t/width + 0.4)/1.4 for t = 0 … width/2 - 1 (Sun et al. 2023, section 3.1, gamma 0.4).
std::vector<double> XposBases(std::int64_t width);

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
