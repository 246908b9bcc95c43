// Any bytes as a claim sheet: nothing crashes, every error has words and a place, and every sheet
// that is accepted is judged on seeds with any values.
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "core/base/random.h"
#include "core/claims/binding.h"
#include "core/claims/evidence.h"
#include "core/claims/judgement.h"
#include "core/claims/sheet_reader.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/violations.h"

namespace pelab::sheet_fuzz {
namespace {

using namespace pelab::claims;
using pelab::fuzz::CheckViolations;
using pelab::fuzz::Require;

constexpr char kSweep[] = R"(
name: t
protocol: [clean, published]
pe: [rope, nope, {name: partial_rope, heads: [1, 2]}]
task: {name: distance, length: 16, vocabulary: 40}
model: {d_model: 16, d_ff: 32, heads: 2, layers: 2, max_len: 16}
)";
constexpr std::int64_t kSeeds = 12;

// Values on both sides of every limit, and some that are missing.
Outcomes MadeUp(const BoundSheet& sheet) {
  Outcomes outcomes;
  for (std::size_t at = 0; at < sheet.configurations.size(); ++at) {
    pelab::CounterRandom random(1, "fuzzed outcomes", at);
    for (std::int64_t seed = 0; seed < kSeeds; ++seed) {
      const bool failed = random.Below(10) == 0;
      Outcome outcome{.state = failed ? Outcome::State::kFailed : Outcome::State::kDone,
                      .analyses = {"head_ablation"}};
      for (const Claim& claim : sheet.sheet.claims) {
        if (random.Below(8) > 0) outcome.values[ValueName(claim)] = random.Normal();
        if (claim.eligible) outcome.values[claim.eligible->metric] = random.Uniform();
      }
      outcomes.Set(at, seed, outcome);
    }
  }
  return outcomes;
}

void CheckBound(const BoundSheet& sheet) {
  const Outcomes outcomes = MadeUp(sheet);
  std::vector<Evidence> evidence;
  for (const BoundClaim& claim : sheet.claims) {
    evidence.push_back(Weigh(sheet, claim, outcomes, 0, kSeeds + 5));
    const Evidence& found = evidence.back();
    Require(found.seeds.size() == kSeeds, "every complete seed is there");
    Require(std::isfinite(found.e.log_holds) && std::isfinite(found.e.log_fails),
            "an e-value is a number");
    for (const SideEvidence& side : found.holds) {
      Require(side.count.successes <= side.count.trials && side.count.trials == found.e.eligible,
              "no more successes than eligible seeds");
    }
    for (std::size_t i = 0; i < claim.statistics.size(); ++i) {
      const Estimate estimate = EstimateOf(found, i);
      Require(estimate.median.low <= estimate.median.high, "limits are in order");
    }
  }
  const auto judgements = Judge(EValuesOf(evidence), sheet.sheet.false_discovery_rate);
  Require(judgements.size() == evidence.size(), "every claim has a verdict");
}

}  // namespace

PELAB_FUZZ_TARGET(sheet) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  const SheetResult read = ReadSheet(text);
  Require(read.sheet.has_value() == read.violations.empty(), "either a sheet or violations");
  CheckViolations(read.violations);
  if (!read.sheet) return 0;
  const bool is_inline = !read.sheet->sweep_document.empty();
  const auto sweep = ParseSweepOf(*read.sheet, is_inline ? read.sheet->sweep_document : kSweep);
  CheckViolations(sweep.violations);
  if (!sweep.sweep) return 0;
  const BindResult result = Bind(*read.sheet, *sweep.sweep);
  Require(result.bound.has_value() == result.violations.empty(), "either cells or violations");
  CheckViolations(result.violations);
  if (result.bound && result.bound->configurations.size() < 64) CheckBound(*result.bound);
  return 0;
}

}  // namespace pelab::sheet_fuzz
