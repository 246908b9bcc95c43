#include "worker/trainer/pe/tables.h"

#include <algorithm>
#include <cmath>

namespace pelab::trainer {

std::vector<double> Frequencies(std::int64_t width, double base) {
  std::vector<double> frequencies((width + 1) / 2);
  for (std::size_t t = 0; t < frequencies.size(); ++t) {
    frequencies[t] = std::pow(base, -2.0 * static_cast<double>(t) / static_cast<double>(width));
  }
  return frequencies;
}

std::vector<double> Sinusoid(std::int64_t length, std::int64_t width, double base,
                             SinusoidLayout layout) {
  const auto frequencies = Frequencies(width, base);
  const auto sines = static_cast<std::int64_t>(frequencies.size());
  std::vector<double> table(length * width);
  for (std::int64_t t = 0; t < length; ++t) {
    for (std::int64_t i = 0; i < sines; ++i) {
      const double angle = static_cast<double>(t) * frequencies[i];
      const bool split = layout == SinusoidLayout::kHalfSplit;
      const std::int64_t sine = split ? i : 2 * i;
      const std::int64_t cosine = split ? sines + i : 2 * i + 1;
      table[t * width + sine] = std::sin(angle);
      if (cosine < width) table[t * width + cosine] = std::cos(angle);
    }
  }
  return table;
}

std::vector<double> RotaryRotations(std::int64_t length, std::int64_t width, double base) {
  const auto frequencies = Frequencies(width, base);
  std::vector<double> rotations;
  for (std::int64_t t = 0; t < length; ++t) {
    for (const double frequency : frequencies) {
      rotations.push_back(std::cos(static_cast<double>(t) * frequency));
      rotations.push_back(std::sin(static_cast<double>(t) * frequency));
    }
  }
  return rotations;
}

std::vector<double> SlicedRotations(std::int64_t length, std::int64_t width, double base) {
  const auto rows = Sinusoid(length, width, base, SinusoidLayout::kHalfSplit);
  std::vector<double> rotations;
  for (std::size_t even = 0; even + 1 < rows.size(); even += 2) {
    rotations.push_back(rows[even + 1]);
    rotations.push_back(rows[even]);
  }
  return rotations;
}

std::vector<double> XposBases(std::int64_t width) {
  std::vector<double> bases;
  for (std::int64_t t = 0; t < width / 2; ++t) {
    bases.push_back((2.0 * static_cast<double>(t) / static_cast<double>(width) + 0.4) / 1.4);
  }
  return bases;
}

std::vector<double> GeometricSlopes(std::int64_t heads) {
  std::int64_t power = 1;
  while (power * 2 <= heads) power *= 2;
  std::vector<double> slopes;
  for (std::int64_t h = 1; h <= power; ++h) {
    slopes.push_back(std::exp2(-8.0 * static_cast<double>(h) / static_cast<double>(power)));
  }
  for (std::int64_t h = 1; static_cast<std::int64_t>(slopes.size()) < heads; h += 2) {
    slopes.push_back(std::exp2(-8.0 * static_cast<double>(h) / static_cast<double>(2 * power)));
  }
  return slopes;
}

std::vector<double> ExponentialSlopes(std::int64_t heads) {
  std::vector<double> slopes(heads);
  for (std::int64_t h = 0; h < heads; ++h) {
    slopes[h] = std::exp(-static_cast<double>(h) / static_cast<double>(heads));
  }
  return slopes;
}

std::int64_t T5Bucket(std::int64_t relative, bool causal, std::int64_t buckets,
                      std::int64_t max_distance) {
  std::int64_t first = 0;
  std::int64_t distance = std::max<std::int64_t>(-relative, 0);
  if (!causal) {
    buckets /= 2;
    first = relative > 0 ? buckets : 0;
    distance = std::abs(relative);
  }
  const std::int64_t exact = buckets / 2;
  if (exact == 0) return first;  // there is only one bucket
  if (distance < exact || max_distance <= exact) {
    return first + std::min(distance, buckets - 1);
  }
  const double share = std::log(static_cast<double>(distance) / static_cast<double>(exact)) /
                       std::log(static_cast<double>(max_distance) / static_cast<double>(exact));
  // For exact powers the quotient should be a whole number. The added 1e-9 keeps rounding from
  // putting them into the bucket below.
  const auto step = static_cast<std::int64_t>(share * static_cast<double>(buckets - exact) + 1e-9);
  return first + std::min(exact + step, buckets - 1);
}

}  // namespace pelab::trainer
