#include "core/stats/bootstrap.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "core/base/random.h"

namespace pelab::stats {
namespace {

constexpr std::size_t kBatch = 64;  // samples whose means are in memory at a time: 5 MB

CounterRandom Resample(int number) {
  return CounterRandom(0, "bootstrap", static_cast<std::uint64_t>(number));
}

// A sample and the means of its resamples.
struct Resampled {
  explicit Resampled(const std::vector<double>& sample) : least(*std::ranges::min_element(sample)) {
    above.reserve(sample.size());
    for (const double value : sample) above.push_back(value - least);
    std::ranges::sort(above);
    means.reserve(kResamples);
  }

  void Add(const std::vector<std::uint32_t>& drawn) {
    const std::size_t n = above.size();
    double sums[4] = {0, 0, 0, 0};  // four sums, so that no addition waits for the previous one
    std::size_t i = 0;
    for (; i + 4 <= n; i += 4) {
      for (std::size_t lane = 0; lane < 4; ++lane) sums[lane] += above[drawn[i + lane]];
    }
    for (; i < n; ++i) sums[0] += above[drawn[i]];
    const double sum = (sums[0] + sums[1]) + (sums[2] + sums[3]);
    means.push_back(least + sum / static_cast<double>(n));
  }

  double least;
  std::vector<double> above;  // the excess of each value over the smallest, ascending
  std::vector<double> means;
};

// Below uses the high half of each 64-bit random number. Fills `halves` with these halves for one
// resample, two from each block. The number of halves must be even.
void FillHalves(const CounterRandom& random, std::vector<std::uint32_t>& halves) {
  for (std::size_t pair = 0; pair < halves.size() / 2; ++pair) {
    const auto block = random.BlockAt(pair);
    halves[2 * pair] = block[0];
    halves[2 * pair + 1] = block[2];
  }
}

// Fills `drawn` with the results of n calls of Below(n).
void Draw(const std::vector<std::uint32_t>& halves, CounterRandom random,
          std::vector<std::uint32_t>& drawn) {
  const auto n = static_cast<std::uint32_t>(drawn.size());
  const std::uint32_t threshold = (0u - n) % n;
  bool all_taken = true;
  for (std::size_t i = 0; i < n; ++i) {
    const std::uint64_t product = std::uint64_t{halves[i]} * n;
    drawn[i] = static_cast<std::uint32_t>(product >> 32);
    all_taken &= static_cast<std::uint32_t>(product) >= threshold;
  }
  if (all_taken) return;
  // Below rejects one of these numbers (it rejects fewer than n of 2^32), so all later draws shift.
  for (std::uint32_t& number : drawn) number = random.Below(n);
}

// The value at `fraction` of the way from the smallest to the largest, interpolated.
double Quantile(std::vector<double>& values, double fraction) {
  const double place = fraction * static_cast<double>(values.size() - 1);
  const auto at = values.begin() + static_cast<std::ptrdiff_t>(std::floor(place));
  std::nth_element(values.begin(), at, values.end());
  if (at + 1 == values.end()) return *at;
  return *at + (place - std::floor(place)) * (*std::min_element(at + 1, values.end()) - *at);
}

// Samples of the same size must be adjacent in `batch`, so that they share their draws.
void FillMeans(std::span<Resampled> batch) {
  std::size_t most = 0;
  for (const Resampled& one : batch) most = std::max(most, one.above.size());
  std::vector<std::uint32_t> halves(most + most % 2), drawn;
  for (int number = 0; number < kResamples; ++number) {
    const CounterRandom random = Resample(number);
    FillHalves(random, halves);
    drawn.clear();
    for (Resampled& one : batch) {
      if (drawn.size() != one.above.size()) {
        drawn.resize(one.above.size());
        Draw(halves, random, drawn);
      }
      one.Add(drawn);
    }
  }
}

}  // namespace

std::vector<std::optional<Interval>> BootstrapIntervals(
    std::span<const std::vector<double>> samples, double confidence) {
  std::vector<std::optional<Interval>> intervals(samples.size());
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    if (samples[i].size() >= 2) order.push_back(i);
  }
  std::ranges::stable_sort(order, {}, [&](std::size_t i) { return samples[i].size(); });
  for (std::size_t first = 0; first < order.size(); first += kBatch) {
    const std::size_t end = std::min(first + kBatch, order.size());
    std::vector<Resampled> batch;
    for (std::size_t i = first; i < end; ++i) batch.emplace_back(samples[order[i]]);
    FillMeans(batch);
    for (std::size_t i = first; i < end; ++i) {
      std::vector<double>& means = batch[i - first].means;
      intervals[order[i]] = {Quantile(means, (1 - confidence) / 2),
                             Quantile(means, (1 + confidence) / 2)};
    }
  }
  return intervals;
}

}  // namespace pelab::stats
