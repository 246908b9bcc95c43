#include "worker/agent/slurm.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"
#include "tests/support/variable.h"

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

class SlurmTimeLeftTest : public testing::Test {
 protected:
  // `script` is what squeue does. Its arguments are in the file "asked".
  absl::StatusOr<absl::Duration> LeftIf(const std::string& script) {
    std::ofstream(dir_ / "squeue") << "#!/bin/sh\necho \"$@\" > " << dir_ / "asked"
                                   << "\n"
                                   << script << "\n";
    std::filesystem::permissions(dir_ / "squeue", std::filesystem::perms::owner_all);
    const Variable path("PATH", absl::StrCat(dir_.path(), ":", getenv("PATH")));
    return SlurmTimeLeft();
  }

  TempDir dir_;
  Variable job_{"SLURM_JOB_ID", "17"};
};

TEST_F(SlurmTimeLeftTest, IsWhatSqueueSaysOfThisJob) {
  EXPECT_EQ(LeftIf("echo 45:10").value(), absl::Minutes(45) + absl::Seconds(10));
  std::string asked;
  std::ifstream file(dir_ / "asked");
  std::getline(file, asked);
  EXPECT_EQ(asked, "-h -j 17 -o %L");
}

TEST_F(SlurmTimeLeftTest, IsNotKnownIfSqueueDoesNotSay) {
  const std::string down =
      "echo 'slurm_load_jobs error: Unable to contact slurm controller' >&2; exit 1";
  EXPECT_EQ(LeftIf(down).value(), absl::InfiniteDuration());
  EXPECT_EQ(LeftIf("echo INVALID").value(), absl::InfiniteDuration());
}

TEST_F(SlurmTimeLeftTest, IsAskedOnlyInAJobOfSlurm) {
  const Variable none("SLURM_JOB_ID", std::nullopt);
  EXPECT_THAT(LeftIf("echo 45:10"), StatusIs(absl::StatusCode::kFailedPrecondition,
                                             HasSubstr("SLURM_JOB_ID is not set")));
}

}  // namespace
}  // namespace pelab::agent
