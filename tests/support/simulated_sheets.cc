#include "tests/support/simulated_sheets.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <span>

#include "core/base/random.h"
#include "core/stats/e_bh.h"
#include "core/stats/e_value.h"
#include "core/stats/seeds.h"

namespace pelab::testing_support {
namespace {

constexpr double kRate = 0.05;
constexpr int kRoundEnds[] = {4, 8, 16, 32, 40};

// Which claims are decided, and how.
struct Decisions {
  std::vector<bool> holds = std::vector<bool>(kSimulatedClaims);
  std::vector<bool> fails = std::vector<bool>(kSimulatedClaims);
};

double ShareOfFalse(const Decisions& decisions, int* decided) {
  int false_ones = 0;
  *decided = 0;
  for (std::size_t claim = 0; claim < kSimulatedClaims; ++claim) {
    if (!decisions.holds[claim] && !decisions.fails[claim]) continue;
    ++*decided;
    if (claim < kTrueNulls || decisions.fails[claim]) ++false_ones;
  }
  return *decided == 0 ? 0 : static_cast<double>(false_ones) / *decided;
}

void Note(const Decisions& decisions, FalseDiscoveries& found) {
  found.at_end = ShareOfFalse(decisions, &found.decided);
  found.at_worst = std::max(found.at_worst, found.at_end);
}

// Differences by claim and seed.
std::vector<std::vector<double>> Differences(std::uint64_t seed) {
  CounterRandom random(seed, "simulated sheet");
  std::vector<std::vector<double>> differences(kSimulatedClaims);
  for (int replicate = 0; replicate < std::end(kRoundEnds)[-1]; ++replicate) {
    const double shared = random.Normal();
    for (int claim = 0; claim < kSimulatedClaims; ++claim) {
      const int step = claim - kTrueNulls;
      const double above = step < 0 ? 0 : 1 + 2.0 * step / (kSimulatedClaims - kTrueNulls - 1);
      differences[static_cast<std::size_t>(claim)].push_back(above + random.Normal() - shared);
    }
  }
  return differences;
}

// The evidence of decided claims is frozen; it stays in the e-BH of the sheet.
class Settler {
 public:
  void Look(const std::vector<std::vector<double>>& differences, int seeds) {
    for (std::size_t claim = 0; claim < kSimulatedClaims; ++claim) {
      if (decisions_.holds[claim] || decisions_.fails[claim]) continue;
      const auto begin = differences[claim].begin();
      const auto above = std::count_if(begin, begin + seeds, [](double d) { return d > 0; });
      logs_[2 * claim] = stats::LogEValue({above, seeds});
      logs_[2 * claim + 1] = stats::LogEValue({seeds - above, seeds});
    }
    const stats::Rejections found = stats::EBh(logs_, kRate);
    for (std::size_t claim = 0; claim < kSimulatedClaims; ++claim) {
      decisions_.holds[claim] = found.rejected[2 * claim];
      decisions_.fails[claim] = found.rejected[2 * claim + 1];
    }
  }
  const Decisions& decisions() const { return decisions_; }

 private:
  std::vector<double> logs_ = std::vector<double>(2 * kSimulatedClaims);
  Decisions decisions_;
};

void LookNaively(const std::vector<std::vector<double>>& differences, int seeds,
                 Decisions& decisions) {
  for (std::size_t claim = 0; claim < kSimulatedClaims; ++claim) {
    if (decisions.holds[claim] || decisions.fails[claim]) continue;
    const std::span values(differences[claim].data(), static_cast<std::size_t>(seeds));
    const double mean = stats::Mean(values), half = *stats::IntervalHalfWidth(values);
    decisions.holds[claim] = mean - half > 0;
    decisions.fails[claim] = mean + half < 0;
  }
}

}  // namespace

SimulatedSheet SimulateSheet(std::uint64_t seed) {
  const std::vector<std::vector<double>> differences = Differences(seed);
  SimulatedSheet sheet;
  Settler settler;
  Decisions naive;
  for (const int seeds : kRoundEnds) {
    settler.Look(differences, seeds);
    Note(settler.decisions(), sheet.settled);
    LookNaively(differences, seeds, naive);
    Note(naive, sheet.naive);
  }
  return sheet;
}

int SeedsUntilDecided(double success, int most, std::uint64_t seed) {
  CounterRandom random(seed, "seeds until decided");
  stats::SignCount holds, fails;
  while (holds.trials < most) {
    const bool above = random.Uniform() < success;
    holds = {holds.successes + (above ? 1 : 0), holds.trials + 1};
    fails = {fails.successes + (above ? 0 : 1), fails.trials + 1};
    const double logs[] = {stats::LogEValue(holds), stats::LogEValue(fails)};
    if (stats::EBh(logs, kRate).count > 0) return static_cast<int>(holds.trials);
  }
  return most + 1;
}

double Median(std::vector<int> values) {
  std::sort(values.begin(), values.end());
  return (values[(values.size() - 1) / 2] + values[values.size() / 2]) / 2.0;
}

}  // namespace pelab::testing_support
