// The numbers behind the PEs. They do not need LibTorch, so tests can check each against an
// independent computation.
#pragma once

#include <cstdint>
#include <vector>

namespace pelab::trainer {

// base^(-2t/width) for t = 0 … ceil(width/2) - 1.
std::vector<double> Frequencies(std::int64_t width, double base);

// Both functions below return one complex factor for each position and pair of channels. The pair,
// read as a complex number, is multiplied by the factor: (length, width/2, 2), row-major, real part
// before imaginary part. `width` is even.
//
// e^(i t f) for position t and the frequency f of the pair (Su et al. 2021, section 3.2).
std::vector<double> RotaryRotations(std::int64_t length, std::int64_t width, double base);
// The table of the authors' code for multi-head latent attention. For each position that code
// stores all sines and then all cosines. It later reads the even columns of this row as sines and
// the odd columns as cosines. So, among the pairs b = 0 … width/2 - 1, the first half has sines
// only: the real part is the sine of frequency 2b+1, the imaginary part that of frequency 2b. The
// second half has cosines in the same way. These are not rotations: at position 0 the first half of
// the pairs is 0.
std::vector<double> SlicedRotations(std::int64_t length, std::int64_t width, double base);
// (2t/width + 0.4)/1.4 for t = 0 … width/2 - 1 (Sun et al. 2023, section 3.1, gamma 0.4).
std::vector<double> XposBases(std::int64_t width);

// The order of sines and cosines in a row.
enum class SinusoidLayout {
  kInterleaved,  // sin, cos, sin, cos, … (Vaswani et al. 2017, section 3.5)
  kHalfSplit,    // all sines, then all cosines
};
// (length, width), row-major: sin and cos of t * base^(-2i/width). If `width` is odd, the last
// frequency has a sine only.
std::vector<double> Sinusoid(std::int64_t length, std::int64_t width, double base,
                             SinusoidLayout layout);

// 2^(-8h/H) for h = 1 … H. If H is not a power of two: the slopes for the next lower power of two,
// then every other slope for the next higher one (Press et al. 2022, reference implementation).
std::vector<double> GeometricSlopes(std::int64_t heads);
// e^(-h/H) for h = 0 … H-1.
std::vector<double> ExponentialSlopes(std::int64_t heads);

// T5's bucket for key position j as seen from query position i, with `relative` = j - i (Raffel et
// al. 2020, section 2.1).
// Causal: n = max(-relative, 0). Each n below buckets/2 has its own bucket; larger n share
// logarithmic buckets up to max_distance. All future keys share bucket 0.
// Bidirectional: each sign has half of the buckets; future keys use the upper half.
std::int64_t T5Bucket(std::int64_t relative, bool causal, std::int64_t buckets,
                      std::int64_t max_distance);

}  // namespace pelab::trainer
