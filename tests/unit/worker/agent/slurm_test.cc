#include "worker/agent/slurm.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/support/status_matchers.h"

namespace pelab::agent {
namespace {

using testing::HasSubstr;

// The forms of `squeue -o %L` in Slurm's manual.
TEST(Slurm, TimesAsSqueueWritesThem) {
  const auto time = [](const char* text) { return ParseSlurmTime(text).value(); };
  EXPECT_EQ(time("59\n"), absl::Seconds(59));
  EXPECT_EQ(time("0:45"), absl::Seconds(45));
  EXPECT_EQ(time("45:10"), absl::Minutes(45) + absl::Seconds(10));
  EXPECT_EQ(time("2:30:00"), absl::Minutes(150));
  EXPECT_EQ(time("4-02:30:05"), absl::Hours(98) + absl::Minutes(30) + absl::Seconds(5));
  EXPECT_EQ(time("UNLIMITED"), absl::InfiniteDuration());
}

TEST(Slurm, WhatIsNoTime) {
  for (const char* text : {"", "\n", "INVALID", "NOT_SET", "1:2:3:4", "1-", "-1", "1-2", "1-2:3",
                           "a:b", "1:-2", "1 2", "1-2-3:4:5", "99999999999", "+5"}) {
    EXPECT_THAT(ParseSlurmTime(text), StatusIs(absl::StatusCode::kInvalidArgument,
                                               HasSubstr("is no time that Slurm writes")))
        << text;
  }
}

}  // namespace
}  // namespace pelab::agent
