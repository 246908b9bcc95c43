#include "core/results/computed_by.h"

#include <gtest/gtest.h>

#include <cstdint>

#include "absl/strings/str_cat.h"
#include "tests/unit/core/results/jobs_fixture.h"

namespace pelab::results {
namespace {

JobList Jobs(int count) {
  std::vector<v1::JobRow> rows;
  for (int i = 1; i <= count; ++i) {
    rows.push_back(MakeJob(i, "rope", i, v1::JOB_STATE_SUCCEEDED, 100));
    rows.back().set_epochs_done(2);
  }
  return JobList(rows);
}

v1::AttemptRow Attempt(std::int64_t job, int number, const std::string& environment) {
  v1::AttemptRow attempt;
  attempt.set_job_id(job);
  attempt.set_number(number);
  attempt.set_environment_json(environment);
  return attempt;
}

constexpr char kCpu[] =
    R"({"device":"cpu","device_name":"AMD EPYC","libtorch":"1.13.0","threads":2,)"
    R"("trainer":"0.5.0"})";

TEST(ComputedByTest, OneEnvironmentIsTwoWords) {
  EXPECT_EQ(ComputedByText(Jobs(2), {Attempt(1, 1, kCpu), Attempt(2, 1, kCpu)}),
            "all 2: cpu, LibTorch 1.13.0");
}

TEST(ComputedByTest, OddOnesAreNamedByWhatDiffers) {
  const std::string threads =
      R"({"device":"cpu","libtorch":"1.13.0","threads":4,"trainer":"0.5.0"})";
  const std::string gpu =
      R"({"device":"cuda:1","device_name":"NVIDIA H100","libtorch":"2.5.1","threads":2,)"
      R"("kernels":"plain","trainer":"0.5.0"})";
  EXPECT_EQ(ComputedByText(Jobs(4), {Attempt(1, 1, kCpu), Attempt(2, 1, threads),
                                     Attempt(3, 1, kCpu), Attempt(4, 1, kCpu)}),
            "3 of 4: cpu, LibTorch 1.13.0, 2 threads; job 2: cpu, LibTorch 1.13.0, 4 threads");
  EXPECT_EQ(ComputedByText(Jobs(3), {Attempt(1, 1, kCpu), Attempt(2, 1, gpu), Attempt(3, 1, kCpu)}),
            "2 of 3: cpu, LibTorch 1.13.0, our kernels; job 2: NVIDIA H100, LibTorch 2.5.1, plain "
            "kernels");
}

TEST(ComputedByTest, ManyOddOnesAreCounted) {
  const std::string other = R"({"device":"cpu","libtorch":"2.1.0","threads":2,"trainer":"0.5.0"})";
  std::vector<v1::AttemptRow> attempts;
  for (int job = 1; job <= 15; ++job) attempts.push_back(Attempt(job, 1, job > 8 ? other : kCpu));
  EXPECT_EQ(
      ComputedByText(Jobs(15), attempts),
      "8 of 15: cpu, LibTorch 1.13.0; jobs 9, 10, 11, 12, 13 and 2 more: cpu, LibTorch 2.1.0");
}

TEST(ComputedByTest, TextsThatSayTheSameAreOneEnvironment) {
  std::vector<v1::AttemptRow> attempts;
  for (const int job : {1, 4, 5, 8, 9}) attempts.push_back(Attempt(job, 1, kCpu));
  for (const int job : {2, 3, 6, 7}) {
    const char* data = job % 2 == 0 ? "a" : "b";
    attempts.push_back(Attempt(
        job, 1,
        absl::StrCat(R"({"device":"cpu","libtorch":"2.1.0",)", R"("threads":2,"trainer":"0.5.0",)",
                     R"("data_sha256":")", data, R"("})")));
  }
  EXPECT_EQ(ComputedByText(Jobs(9), attempts),
            "5 of 9: cpu, LibTorch 1.13.0; jobs 2, 3, 6, 7: cpu, LibTorch 2.1.0");
}

TEST(ComputedByTest, TheLastAttemptThatSaysSomethingCounts) {
  const std::string other = R"({"device":"cpu","libtorch":"2.1.0"})";
  v1::AttemptRow silent;
  silent.set_job_id(1);
  silent.set_number(3);
  EXPECT_EQ(ComputedByText(Jobs(1), {Attempt(1, 2, kCpu), silent, Attempt(1, 1, other)}),
            "all 1: cpu, LibTorch 1.13.0");
}

TEST(ComputedByTest, WhatIsNotKnownIsNotSaid) {
  EXPECT_EQ(ComputedByText(Jobs(1), {}), "");
  EXPECT_EQ(ComputedByText(Jobs(1), {Attempt(1, 1, "{}")}), "");
  EXPECT_EQ(ComputedByText(Jobs(1), {Attempt(1, 1, "not json")}), "");
  EXPECT_EQ(ComputedByText(Jobs(1), {Attempt(1, 1, R"({"device":3,"libtorch":null})")}),
            "all 1: 3, LibTorch null");
  v1::JobRow waiting = MakeJob(1, "rope", 0, v1::JOB_STATE_QUEUED, 0);
  EXPECT_EQ(ComputedByText(JobList({waiting}), {Attempt(1, 1, kCpu)}), "") << "no epoch yet";
}

}  // namespace
}  // namespace pelab::results
