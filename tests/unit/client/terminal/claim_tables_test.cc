#include "client/terminal/claim_tables.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "core/render/text.h"
#include "tests/unit/core/claims/claims_fixture.h"

namespace pelab::client {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// The table of a claim whose two cells differ by these accuracies in the seeds 0, 1, …
std::string VerdictOf(const std::vector<double>& differences, int width = 200) {
  JudgedSheet judged{
      .sheet = claims::Bound("  - {id: rope-above-nope, above: {metric: test_accuracy, "
                             "a: pe=rope, b: pe=nope}}\n",
                             claims::kThreePes),
      .source = "made up"};
  claims::Outcomes outcomes;
  claims::SetAccuracy(outcomes, claims::kRope, differences);
  claims::SetAccuracy(outcomes, claims::kNope, std::vector<double>(differences.size(), 0));
  for (const std::size_t cell : {claims::kRope, claims::kNope}) {
    for (std::size_t seed = 0; seed < differences.size(); ++seed) {
      const auto number = static_cast<std::int64_t>(seed);
      claims::Outcome outcome = outcomes.Of(cell, number);
      outcome.slot_seconds = 31.25;
      outcomes.Set(cell, number, outcome);
    }
  }
  judged.evidence = {claims::Weigh(judged.sheet, judged.sheet.claims[0], outcomes, 0, 40)};
  judged.judgements = claims::Judge(claims::EValuesOf(judged.evidence), 0.05);
  render::Style style;
  style.width = width;
  return VerdictsText(judged, style);
}

// By hand: three values m - d, m, m + d have the mean m and the half-width
// t(0.975, 2) d / sqrt(3) = 4.3027 d / 1.7321 = 2.4841 d.
TEST(ClaimTablesTest, WhatWouldBeZeroHasAThirdDecimal) {
  EXPECT_THAT(VerdictOf({0.25, 0.3, 0.35}), HasSubstr("+0.30 ± 0.12 "));
  EXPECT_THAT(VerdictOf({0.02, 0.03, 0.04}), HasSubstr("+0.03 ± 0.02 "));
  EXPECT_THAT(VerdictOf({0.001, 0.002, 0.003}), HasSubstr("+0.002 ± 0.002 "));
  EXPECT_THAT(VerdictOf({-0.003, -0.002, -0.001}), HasSubstr("-0.002 ± 0.002 "));
  EXPECT_THAT(VerdictOf({-0.00001, -0.00001}), HasSubstr("+0.000 ± 0.000 ")) << "no -0.000";
  EXPECT_THAT(VerdictOf({0.00133}), HasSubstr("+0.001 ")) << "one seed has no interval";
}

TEST(ClaimTablesTest, CostsAreShownWhereThereIsRoom) {
  for (const int width : {80, 99}) EXPECT_THAT(VerdictOf({1}, width), Not(HasSubstr("cost")));
  const std::string wide = VerdictOf({1, 1}, 100);
  EXPECT_THAT(wide, HasSubstr(" cost\n"));
  EXPECT_THAT(wide, HasSubstr("2m05s\n")) << "four jobs of 31.25 s";
}

TEST(ClaimTablesTest, TheTableFitsAHundredColumns) {
  const std::vector<double> close(20, -0.0012);
  const std::string text = VerdictOf(close, 100);
  EXPECT_THAT(text, HasSubstr("-0.001…-0.001")) << "the median has the decimals of the mean";
  const std::string table = text.substr(0, text.find("e: the larger"));
  for (const std::string& line : std::vector<std::string>(absl::StrSplit(table, '\n'))) {
    EXPECT_LE(render::DisplayWidth(line), 100) << line;
  }
}

}  // namespace
}  // namespace pelab::client
