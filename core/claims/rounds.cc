#include "core/claims/rounds.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>

#include "core/claims/metric.h"
#include "core/stats/e_value.h"

namespace pelab::claims {
namespace {

constexpr std::pair<Standing, const char*> kStandings[] = {{Standing::kOpen, "open"},
                                                           {Standing::kDecided, "decided"},
                                                           {Standing::kAllSeeds, "all seeds"},
                                                           {Standing::kFutile, "futile"},
                                                           {Standing::kPutAside, "put aside"}};

// The cells of open claims, with the metrics that they are about.
std::map<std::size_t, std::set<std::string>> OpenCells(const BoundSheet& sheet,
                                                       std::span<const ClaimState> states) {
  std::map<std::size_t, std::set<std::string>> cells;
  for (std::size_t i = 0; i < sheet.claims.size(); ++i) {
    const BoundClaim& claim = sheet.claims[i];
    if (states[i].standing != Standing::kOpen) continue;
    const Claim& of_sheet = sheet.sheet.claims[claim.claim];
    for (const std::size_t cell : CellsOf(claim)) {
      for (const std::string& metric : MetricsOf(of_sheet)) cells[cell].insert(metric);
    }
  }
  return cells;
}

// The first of the metrics whose analysis is still to come; empty: there is none.
std::string FirstLacking(const Outcome& outcome, const std::set<std::string>& metrics) {
  const auto lacks = [&](const std::string& metric) { return outcome.Lacks(metric); };
  const auto found = std::find_if(metrics.begin(), metrics.end(), lacks);
  return found == metrics.end() ? "" : *found;
}

// How many seeds can be expected to be eligible, of `most` that a claim can have: the same share of
// the ones to come as of the ones so far, if the next one is.
std::int64_t MostEligible(const EValues& e, std::int64_t most) {
  const double share = static_cast<double>(e.eligible + 1) / static_cast<double>(e.seeds + 1);
  const auto to_come = static_cast<double>(most - e.seeds);
  return e.eligible + static_cast<std::int64_t>(std::ceil(std::max(0.0, to_come) * share));
}

// At most the chance that the claim will be decided. "Holds" needs every side, so it is no likelier
// than the least likely one. "Fails" needs a mean, which can be no larger than its largest side.
double ChanceOfDecision(const Evidence& evidence, double log_threshold, std::int64_t most_seeds) {
  const std::int64_t most = MostEligible(evidence.e, most_seeds);
  double holds = 1, fails = 0;
  for (const SideEvidence& side : evidence.holds) {
    holds = std::min(holds, stats::ChanceOfReaching(log_threshold, side.count, most));
  }
  for (const SideEvidence& side : evidence.fails) {
    fails += stats::ChanceOfReaching(log_threshold, side.count, most);
  }
  return holds + fails;
}

// The logarithm of the e-value from which on a claim would be decided if all open claims were: the
// lowest threshold that it can face. With the present one, a sheet of many claims would give up its
// first claims before any of them can be decided.
double LowestThreshold(const BoundSheet& sheet, std::span<const ClaimState> states) {
  const auto count = std::count_if(states.begin(), states.end(), [](const ClaimState& state) {
    return state.standing == Standing::kDecided || state.standing == Standing::kOpen;
  });
  const auto hypotheses = 2 * static_cast<double>(states.size());
  return std::log(hypotheses / (sheet.sheet.false_discovery_rate *
                                static_cast<double>(std::max<std::ptrdiff_t>(1, count))));
}

}  // namespace

std::string NameOf(Standing standing) {
  for (const auto& [value, name] : kStandings) {
    if (value == standing) return name;
  }
  return "";
}

std::optional<Standing> ParseStanding(std::string_view name) {
  for (const auto& [value, its] : kStandings) {
    if (its == name) return value;
  }
  return std::nullopt;
}

std::optional<Round> NextRound(const BoundSheet& sheet, const Registration& registration,
                               const Round* last, std::span<const ClaimState> states) {
  const auto cells = OpenCells(sheet, states);
  if (cells.empty()) return std::nullopt;
  Round round{.first_seed = registration.first_seed};
  for (const auto& [cell, metrics] : cells) round.cells.push_back(cell);
  if (last != nullptr) {
    round.number = last->number + 1;
    round.first_seed = last->end_seed;
  }
  const std::int64_t so_far = round.first_seed - registration.first_seed;
  const auto wide = static_cast<std::int64_t>(cells.size());
  const std::int64_t busy = (registration.slots + wide - 1) / wide;
  const std::int64_t seeds = std::min(busy, std::max<std::int64_t>(1, so_far));
  const std::int64_t end =
      std::min(registration.first_seed + sheet.sheet.max_seeds, kFirstPilotSeed);
  round.end_seed = std::min(round.first_seed + seeds, end);
  if (round.end_seed <= round.first_seed) return std::nullopt;
  return round;
}

std::vector<OpenCell> OpenCellsOf(const BoundSheet& sheet, const Registration& registration,
                                  const Round& round, std::span<const ClaimState> states,
                                  const Outcomes& outcomes) {
  const auto metrics = OpenCells(sheet, states);
  std::vector<OpenCell> open;
  for (std::int64_t seed = registration.first_seed; seed < round.end_seed; ++seed) {
    for (const std::size_t cell : round.cells) {
      const auto of_cell = metrics.find(cell);
      if (of_cell == metrics.end()) continue;
      const Outcome& outcome = outcomes.Of(cell, seed);
      const std::string lacks = FirstLacking(outcome, of_cell->second);
      if (outcome.state == Outcome::State::kOpen || !lacks.empty()) {
        open.push_back({cell, seed, lacks});
      }
    }
  }
  return open;
}

std::vector<ClaimState> Conclude(const BoundSheet& sheet, const Registration& registration,
                                 const Round& round, std::span<const ClaimState> before,
                                 const Outcomes& outcomes) {
  std::vector<ClaimState> after(before.begin(), before.end());
  std::vector<Evidence> evidence(after.size());
  std::vector<EValues> values(after.size());
  for (std::size_t i = 0; i < after.size(); ++i) {
    if (after[i].standing == Standing::kOpen) {
      evidence[i] =
          Weigh(sheet, sheet.claims[i], outcomes, registration.first_seed, round.end_seed);
      after[i].e = evidence[i].e;
    }
    values[i] = after[i].e;
  }
  const std::vector<Judgement> judgements = Judge(values, sheet.sheet.false_discovery_rate);
  for (std::size_t i = 0; i < after.size(); ++i) {
    after[i].judgement = judgements[i];
    // A claim that was given up is decided too if others lower the threshold to what it has.
    if (IsDecided(judgements[i].verdict)) after[i].standing = Standing::kDecided;
  }
  const double threshold = LowestThreshold(sheet, after);
  const std::int64_t most = sheet.sheet.max_seeds;
  for (std::size_t i = 0; i < after.size(); ++i) {
    ClaimState& state = after[i];
    if (state.standing != Standing::kOpen) continue;
    if (state.e.seeds >= most || round.end_seed >= kFirstPilotSeed) {
      state.standing = Standing::kAllSeeds;
    } else if (ChanceOfDecision(evidence[i], threshold, most) < kFutileChance) {
      state.standing = Standing::kFutile;
    }
  }
  return after;
}

std::int64_t ExploratorySeeds(const Registration& registration, std::int64_t seeds) {
  return std::clamp<std::int64_t>(registration.fresh_from - registration.first_seed, 0, seeds);
}

}  // namespace pelab::claims
