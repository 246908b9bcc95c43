#include "core/claims/evidence.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/claims/metric.h"
#include "core/experiment/shortcut.h"
#include "core/stats/seeds.h"

namespace pelab::claims {
namespace {

constexpr double kUndefined = std::numeric_limits<double>::quiet_NaN();

double ValueOf(const Outcome& outcome, const std::string& name) {
  if (outcome.state == Outcome::State::kFailed) return WorstValue(name).value_or(kUndefined);
  const auto found = outcome.values.find(name);
  return found == outcome.values.end() ? kUndefined : found->second;
}

bool IsEligible(const BoundSheet& sheet, std::size_t cell, const Outcome& outcome,
                const Eligibility& eligibility) {
  const double above = eligibility.above
                           ? *eligibility.above
                           : experiment::BestShortcut(sheet.configurations[cell].job).accuracy;
  // Not above what is undefined, either.
  return ValueOf(outcome, eligibility.metric) > above + eligibility.by;
}

// How far a sum of accuracies lies from its exact value at most. Accuracies are fractions, so a sum
// that is exactly on the limit may come out on either side of it.
constexpr double kRounding = 1e-12;

bool Beyond(const Side& side, double value) {
  const double slack = kRounding * std::max(1.0, std::abs(side.limit));
  return side.above ? value > side.limit + slack : value < side.limit - slack;
}

stats::SignCount Count(const Side& side, const std::vector<SeedEvidence>& seeds) {
  stats::SignCount count;
  for (const SeedEvidence& seed : seeds) {
    if (!seed.eligible) continue;
    ++count.trials;
    if (Beyond(side, seed.values[side.statistic])) ++count.successes;
  }
  return count;
}

std::vector<SideEvidence> WeighSides(const std::vector<Side>& sides,
                                     const std::vector<SeedEvidence>& seeds) {
  std::vector<SideEvidence> evidence;
  for (const Side& side : sides) {
    const stats::SignCount count = Count(side, seeds);
    evidence.push_back({side, count, stats::LogEValue(count)});
  }
  return evidence;
}

std::vector<double> Logs(const std::vector<SideEvidence>& sides) {
  std::vector<double> logs;
  logs.reserve(sides.size());
  for (const SideEvidence& side : sides) logs.push_back(side.log_e);
  return logs;
}

}  // namespace

std::vector<EValues> EValuesOf(std::span<const Evidence> claims) {
  std::vector<EValues> values;
  values.reserve(claims.size());
  for (const Evidence& claim : claims) values.push_back(claim.e);
  return values;
}

std::vector<std::size_t> CellsOf(const BoundClaim& claim) {
  std::vector<std::size_t> cells;
  for (const Statistic& statistic : claim.statistics) {
    for (const BoundTerm& term : statistic) cells.push_back(term.configuration);
  }
  std::sort(cells.begin(), cells.end());
  cells.erase(std::unique(cells.begin(), cells.end()), cells.end());
  return cells;
}

Evidence Weigh(const BoundSheet& sheet, const BoundClaim& bound, const Outcomes& outcomes,
               std::int64_t first_seed, std::int64_t end_seed) {
  const Claim& claim = sheet.sheet.claims[bound.claim];
  const std::string name = ValueName(claim);
  const std::vector<std::string> metrics = MetricsOf(claim);
  const std::vector<std::size_t> cells = CellsOf(bound);
  Evidence evidence;
  for (std::int64_t seed = first_seed; seed < std::min(end_seed, kFirstPilotSeed); ++seed) {
    const auto is_open = [&](std::size_t cell) {
      const Outcome& outcome = outcomes.Of(cell, seed);
      const auto lacks = [&](const std::string& metric) { return outcome.Lacks(metric); };
      return outcome.state == Outcome::State::kOpen ||
             std::any_of(metrics.begin(), metrics.end(), lacks);
    };
    if (std::any_of(cells.begin(), cells.end(), is_open)) break;
    SeedEvidence found{.seed = seed};
    for (const std::size_t cell : cells) {
      found.eligible =
          found.eligible &&
          (!claim.eligible || IsEligible(sheet, cell, outcomes.Of(cell, seed), *claim.eligible));
      evidence.slot_seconds += outcomes.Of(cell, seed).slot_seconds;
    }
    for (const Statistic& statistic : bound.statistics) {
      double sum = 0;
      for (const BoundTerm& term : statistic) {
        sum += term.weight * ValueOf(outcomes.Of(term.configuration, seed), name);
      }
      found.values.push_back(sum);
    }
    evidence.e.seeds += 1;
    evidence.e.eligible += found.eligible ? 1 : 0;
    evidence.seeds.push_back(std::move(found));
  }
  evidence.holds = WeighSides(bound.holds, evidence.seeds);
  evidence.fails = WeighSides(bound.fails, evidence.seeds);
  const std::vector<double> holds = Logs(evidence.holds);
  evidence.e.log_holds = *std::min_element(holds.begin(), holds.end());
  evidence.e.log_fails = stats::LogMeanEValue(Logs(evidence.fails));
  return evidence;
}

Estimate EstimateOf(const Evidence& evidence, std::size_t statistic) {
  std::vector<double> finite, defined;
  for (const SeedEvidence& seed : evidence.seeds) {
    const double value = seed.values[statistic];
    if (!seed.eligible || std::isnan(value)) continue;
    defined.push_back(value);
    if (std::isfinite(value)) finite.push_back(value);
  }
  Estimate estimate{.n = static_cast<std::int64_t>(finite.size()),
                    .mean = std::nullopt,
                    .t_half_width = stats::IntervalHalfWidth(finite),
                    .median = stats::MedianSequence(defined)};
  if (!finite.empty()) estimate.mean = stats::Mean(finite);
  return estimate;
}

}  // namespace pelab::claims
