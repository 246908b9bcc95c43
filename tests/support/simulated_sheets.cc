#include "tests/support/simulated_sheets.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>

#include "core/base/random.h"
#include "core/claims/binding.h"
#include "core/claims/judgement.h"
#include "core/claims/outcomes.h"
#include "core/claims/rounds.h"
#include "core/stats/e_bh.h"
#include "core/stats/e_value.h"
#include "core/stats/seeds.h"

namespace pelab::testing_support {
namespace {

constexpr double kRate = 0.05;
constexpr int kSeeds = 40;
constexpr std::int64_t kSeedsOfARound = 8;
constexpr std::size_t kNaiveLooks[] = {4, 8, 16, 32, 40};
constexpr char kMetric[] = "test_accuracy";

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

using Values = std::vector<std::vector<double>>;  // of each cell, by seed

Values DrawValues(std::uint64_t seed) {
  CounterRandom random(seed, "simulated sheet");
  Values values(kSimulatedClaims + 1);
  for (int replicate = 0; replicate < kSeeds; ++replicate) {
    values[0].push_back(random.Normal());
    for (int claim = 0; claim < kSimulatedClaims; ++claim) {
      const int step = claim - kTrueNulls;
      const double above = step < 0 ? 0 : 1 + 2.0 * step / (kSimulatedClaims - kTrueNulls - 1);
      values[static_cast<std::size_t>(claim) + 1].push_back(above + random.Normal());
    }
  }
  return values;
}

// Cell 0 is the one that all claims share.
claims::BoundSheet MakeSheet() {
  claims::BoundSheet sheet;
  sheet.sheet.false_discovery_rate = kRate;
  sheet.sheet.max_seeds = kSeeds;
  sheet.sheet.claims = {{.kind = claims::Kind::kAbove, .metric = kMetric}};
  sheet.configurations.resize(kSimulatedClaims + 1);
  for (std::size_t claim = 0; claim < kSimulatedClaims; ++claim) {
    claims::BoundClaim bound;
    bound.statistics = {{{.configuration = claim + 1, .weight = 1}, {.weight = -1}}};
    bound.holds = {{.above = true}};
    bound.fails = {{.above = false}};
    sheet.claims.push_back(std::move(bound));
  }
  return sheet;
}

void AddRound(const claims::Round& round, const Values& values, claims::Outcomes& outcomes) {
  for (const std::size_t cell : round.cells) {
    for (std::int64_t seed = round.first_seed; seed < round.end_seed; ++seed) {
      claims::Outcome outcome{.state = claims::Outcome::State::kDone};
      outcome.values[kMetric] = values[cell][static_cast<std::size_t>(seed)];
      outcomes.Set(cell, seed, std::move(outcome));
    }
  }
}

FalseDiscoveries Settle(const Values& values) {
  const claims::BoundSheet sheet = MakeSheet();
  const claims::Registration registration{.slots = kSeedsOfARound * (kSimulatedClaims + 1)};
  std::vector<claims::ClaimState> states(kSimulatedClaims);
  claims::Outcomes outcomes;
  FalseDiscoveries found;
  std::optional<claims::Round> round;
  while ((round = claims::NextRound(sheet, registration, round ? &*round : nullptr, states))) {
    AddRound(*round, values, outcomes);
    states = claims::Conclude(sheet, registration, *round, states, outcomes);
    Decisions decisions;
    for (std::size_t claim = 0; claim < kSimulatedClaims; ++claim) {
      decisions.holds[claim] = states[claim].judgement.verdict == claims::Verdict::kHolds;
      decisions.fails[claim] = states[claim].judgement.verdict == claims::Verdict::kFails;
    }
    Note(decisions, found);
  }
  return found;
}

void LookNaively(const Values& values, std::size_t seeds, Decisions& decisions) {
  for (std::size_t claim = 0; claim < kSimulatedClaims; ++claim) {
    if (decisions.holds[claim] || decisions.fails[claim]) continue;
    std::vector<double> differences;
    for (std::size_t seed = 0; seed < seeds; ++seed) {
      differences.push_back(values[claim + 1][seed] - values[0][seed]);
    }
    const double mean = stats::Mean(differences), half = *stats::IntervalHalfWidth(differences);
    decisions.holds[claim] = mean - half > 0;
    decisions.fails[claim] = mean + half < 0;
  }
}

}  // namespace

SimulatedSheet SimulateSheet(std::uint64_t seed) {
  const Values values = DrawValues(seed);
  SimulatedSheet sheet{.settled = Settle(values)};
  Decisions naive;
  for (const std::size_t seeds : kNaiveLooks) {
    LookNaively(values, seeds, naive);
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
