// Sheets that the tests of core/claims share.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/base/strings.h"
#include "core/claims/binding.h"
#include "core/claims/outcomes.h"
#include "core/claims/sheet_reader.h"

namespace pelab::claims {

// The sheet of these claims, which are the items of a YAML list indented by two.
inline Sheet SheetOf(const std::string& claims, const std::string& settings = "") {
  const SheetResult read =
      ReadSheet(Concat("name: s\nsweep: t.yaml\n", settings, "claims:\n", claims));
  for (const auto& violation : read.violations) ADD_FAILURE() << Format(violation, "s.yaml");
  return read.sheet.value_or(Sheet());
}
inline BoundSheet Bound(const std::string& claims, const std::string& sweep,
                        const std::string& settings = "") {
  const Sheet sheet = SheetOf(claims, settings);
  BindResult result = Bind(sheet, *ParseSweepOf(sheet, sweep).sweep);
  for (const auto& violation : result.violations) ADD_FAILURE() << Format(violation, "s.yaml");
  return result.bound.value_or(BoundSheet());
}

inline constexpr char kThreePes[] = R"(
name: t
pe: [rope, nope, alibi]
task: {name: distance, length: 16, max_distance: 8, vocabulary: 40}
model: {d_model: 16, d_ff: 32, heads: 2, layers: 2, max_len: 16}
)";
inline constexpr std::size_t kRope = 0, kNope = 1, kAlibi = 2;

// Sets a value of the seeds 0, 1, …, which become complete.
inline void SetAccuracy(Outcomes& outcomes, std::size_t configuration,
                        const std::vector<double>& values,
                        const std::string& name = "test_accuracy") {
  for (std::size_t seed = 0; seed < values.size(); ++seed) {
    const auto number = static_cast<std::int64_t>(seed);
    Outcome outcome = outcomes.Of(configuration, number);
    outcome.state = Outcome::State::kDone;
    outcome.values[name] = values[seed];
    outcome.analyses = {"head_ablation"};
    outcomes.Set(configuration, number, outcome);
  }
}

}  // namespace pelab::claims
