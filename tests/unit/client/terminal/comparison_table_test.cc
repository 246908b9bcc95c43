#include "client/terminal/comparison_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/core/results/jobs_fixture.h"

namespace pelab::client {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::string TextOf(stats::IntervalKind interval, const render::Style& style) {
  const results::JobList a({MakeJob(1, "rope", 0, kDone, 900), MakeJob(2, "rope", 1, kDone, 950)});
  const results::JobList b({MakeJob(3, "nope", 0, kDone, 800), MakeJob(4, "nope", 1, kDone, 700)});
  const auto comparison = results::Compare(a, b, {"pe"}, results::Metric{}, nullptr, interval);
  return ComparisonText(*comparison, "pe=rope", "pe=nope", style);
}

TEST(ComparisonTextTest, WhatABootstrapOfFewSeedsIsWorth) {
  EXPECT_THAT(
      TextOf(stats::IntervalKind::kBootstrap, {.color = false, .width = 200}),
      HasSubstr("interval: percentile bootstrap of the mean, too narrow for few seeds; p: "));
  EXPECT_THAT(TextOf(stats::IntervalKind::kBootstrap, {.color = false, .width = 80}),
              HasSubstr("too\nnarrow for few seeds; p: paired t test, two-sided\n"));
  EXPECT_THAT(TextOf(stats::IntervalKind::kStudentT, {.color = false, .width = 80}),
              Not(HasSubstr("narrow")));
}

}  // namespace
}  // namespace pelab::client
