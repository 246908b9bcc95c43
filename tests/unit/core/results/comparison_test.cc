#include "core/results/comparison.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/core/results/jobs_fixture.h"

namespace pelab::results {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr auto kT = stats::IntervalKind::kStudentT;

absl::StatusOr<Comparison> Of(const std::vector<v1::JobRow>& a, const std::vector<v1::JobRow>& b,
                              const std::vector<std::string>& compared = {"pe"}) {
  return Compare(JobList(a), JobList(b), compared, Metric{}, nullptr, kT);
}

TEST(CompareTest, PairsBySeed) {
  const auto comparison = Of({MakeJob(1, "rope", 0, kDone, 900), MakeJob(2, "rope", 1, kDone, 950),
                              MakeJob(3, "rope", 2, kDone, 920)},
                             {MakeJob(4, "mla", 1, kDone, 900), MakeJob(5, "mla", 0, kDone, 880),
                              MakeJob(6, "mla", 7, kDone, 100)});
  ASSERT_TRUE(comparison.ok()) << comparison.status();
  ASSERT_EQ(comparison->groups.size(), 1u);
  const PairGroup& group = comparison->groups[0];
  EXPECT_THAT(comparison->columns, ElementsAre("task"));
  EXPECT_THAT(group.values, ElementsAre("distance"));
  ASSERT_EQ(group.pairs.size(), 2u);
  EXPECT_EQ(group.pairs[0].b.job_id(), 5);
  EXPECT_NEAR(*group.pairs[0].difference, 0.02, 1e-12);
  EXPECT_NEAR(*group.difference.mean, 0.035, 1e-12);
  EXPECT_NEAR(*group.a.mean, 0.925, 1e-12) << "of the paired jobs alone";
  EXPECT_EQ(comparison->unpaired_a, 1u);
  EXPECT_EQ(comparison->unpaired_b, 1u);
  EXPECT_THAT(comparison->confounders, IsEmpty());
}

TEST(CompareTest, PairsWithoutAValueAreCounted) {
  const auto comparison =
      Of({MakeJob(1, "rope", 0, kDone, 900), MakeJob(2, "rope", 1, kDone, 950),
          MakeJob(3, "rope", 2, kDone, 950), MakeJob(7, "rope", 3, kDone, 950)},
         {MakeJob(4, "mla", 0, v1::JOB_STATE_FAILED, 900),
          MakeJob(5, "mla", 1, v1::JOB_STATE_RUNNING, 1), MakeJob(6, "mla", 2, kDone, 900),
          MakeJob(8, "mla", 3, v1::JOB_STATE_CANCELLED, 900)});
  ASSERT_TRUE(comparison.ok()) << comparison.status();
  const PairGroup& group = comparison->groups[0];
  EXPECT_EQ(group.difference.n, 1);
  EXPECT_EQ(group.difference.failed, 1);
  EXPECT_EQ(group.difference.cancelled, 1);
  EXPECT_EQ(group.difference.missing, 1);
  EXPECT_FALSE(group.test.has_value());
}

// By hand: the differences 0.9 and -0.3 have the mean 0.3, and t(0.975, 1) = 12.7062 times the
// standard error 0.6 on each side of it.
TEST(CompareTest, AnIntervalOfADifferenceOfAccuraciesStaysWithinItsRange) {
  const std::vector<v1::JobRow> a = {MakeJob(1, "rope", 0, kDone, 950),
                                     MakeJob(2, "rope", 1, kDone, 200)};
  const std::vector<v1::JobRow> b = {MakeJob(3, "mla", 0, kDone, 50),
                                     MakeJob(4, "mla", 1, kDone, 500)};
  const auto comparison = Of(a, b);
  ASSERT_TRUE(comparison.ok()) << comparison.status();
  const PairGroup& group = comparison->groups[0];
  EXPECT_NEAR(*group.difference.mean, 0.3, 1e-12);
  EXPECT_EQ(*group.difference.low, -1);
  EXPECT_EQ(*group.difference.high, 1);
  EXPECT_NEAR(*group.difference.half_width, 12.7062 * 0.6, 1e-4);
  EXPECT_NEAR(group.test->t, 0.3 / 0.6, 1e-12) << "the test is of the differences";
}

TEST(CompareTest, EverythingElseIsEqual) {
  const auto comparison =
      Of({MakeJob(1, "rope", 0, kDone, 900, "0.001"), MakeJob(2, "rope", 0, kDone, 800, "0.002")},
         {MakeJob(3, "mla", 0, kDone, 700, "0.002"), MakeJob(4, "mla", 0, kDone, 600, "0.001")});
  ASSERT_TRUE(comparison.ok()) << comparison.status();
  EXPECT_THAT(comparison->columns, ElementsAre("task", "train.lr"));
  ASSERT_EQ(comparison->groups.size(), 2u);
  EXPECT_EQ(comparison->groups[0].pairs[0].b.job_id(), 4);
  EXPECT_EQ(comparison->groups[1].pairs[0].b.job_id(), 3);
}

TEST(CompareTest, WhatGoesWithTheSidesIsSaid) {
  const auto comparison =
      Of({MakeJob(1, "rope", 0, kDone, 900, "0.001")}, {MakeJob(2, "mla", 0, kDone, 700, "0.002")});
  ASSERT_TRUE(comparison.ok()) << comparison.status();
  EXPECT_EQ(comparison->groups.size(), 1u);
  EXPECT_THAT(comparison->confounders, ElementsAre("train.lr: 0.001 against 0.002"));
}

TEST(CompareTest, OnePartnerEach) {
  const auto several =
      Of({MakeJob(1, "rope", 0, kDone, 900, "0.001"), MakeJob(2, "rope", 0, kDone, 800, "0.002")},
         {MakeJob(3, "mla", 0, kDone, 700)}, {"pe", "train.lr"});
  EXPECT_EQ(several.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(several.status().message()), HasSubstr("differ only in train.lr"));
  const auto both = Of({MakeJob(1, "rope", 0, kDone, 900)}, {MakeJob(1, "rope", 0, kDone, 900)});
  EXPECT_THAT(std::string(both.status().message()), HasSubstr("job 1 is on both sides"));
}

v1::JobRow RopeOfBase(std::int64_t id, const std::string& base) {
  v1::JobRow job = MakeJob(id, "rope", 0, kDone, 900);
  job.set_pe_label("rope(base=" + base + ")");
  job.set_spec_json(R"({"format":1,"pe":{"base":)" + base +
                    R"(,"name":"rope"},"seed":0,"task":{"data_seed":0,"name":"distance"},)" +
                    R"("train":{"lr":0.001}})");
  return job;
}

TEST(CompareTest, OnlyFieldsThatDifferAreNamed) {
  const auto options =
      Of({RopeOfBase(1, "500"), RopeOfBase(2, "1000")}, {MakeJob(3, "mla", 0, kDone, 700)});
  EXPECT_THAT(std::string(options.status().message()), HasSubstr("differ only in pe.base: add"));
  const auto names = Of({MakeJob(1, "rope", 0, kDone, 900), MakeJob(2, "nope", 0, kDone, 800)},
                        {MakeJob(3, "mla", 0, kDone, 700)});
  EXPECT_THAT(std::string(names.status().message()), HasSubstr("differ only in pe: add"));
}

v1::AnalysisRow Judged(std::int64_t job, const std::string& right, std::int64_t total = 8) {
  v1::AnalysisRow row;
  row.set_job_id(job);
  row.set_name("example_correctness");
  row.set_version(1);
  row.set_parameters_json("{}");
  row.set_total(total);
  row.set_result_json(R"({"right":")" + right + R"("})");
  return row;
}

TEST(CompareExamplesTest, CountsWhatOnlyOneHasRight) {
  auto comparison = Of({MakeJob(1, "rope", 0, kDone, 900), MakeJob(2, "rope", 1, kDone, 950)},
                       {MakeJob(3, "mla", 0, kDone, 900), MakeJob(4, "mla", 1, kDone, 880)});
  ASSERT_TRUE(comparison.ok());
  // 1111 0100 against 0110 1100: the first and the fourth against the fifth. The other pair lacks
  // one side.
  CompareExamples({Judged(1, "f4"), Judged(3, "6c"), Judged(2, "ff")}, *comparison);
  const PairGroup& group = comparison->groups[0];
  ASSERT_TRUE(group.pairs[0].examples.has_value());
  EXPECT_EQ(group.pairs[0].examples->only_a, 2);
  EXPECT_EQ(group.pairs[0].examples->only_b, 1);
  EXPECT_FALSE(group.pairs[1].examples.has_value());
  const render::Json json = ToJson(*comparison, group);
  EXPECT_FALSE(json.contains("mcnemar")) << "it is about one pair of models";
  EXPECT_EQ(json["pairs"][0]["mcnemar"]["only_a"], 2);
  EXPECT_EQ(json["pairs"][0]["mcnemar"]["p"], 1);
  EXPECT_TRUE(json["pairs"][1]["mcnemar"].is_null());
}

TEST(CompareTest, APairInWhichASideNeverGotThereHasNoMeanDifference) {
  const MetricValues values = {{1, 5.0}, {2, 6.0}, {3, 9.0}};  // job 4 has no value
  const JobList a({MakeJob(1, "rope", 0, kDone, 900), MakeJob(2, "rope", 1, kDone, 950)});
  const JobList b({MakeJob(3, "mla", 0, kDone, 900), MakeJob(4, "mla", 1, kDone, 880)});
  const auto comparison = Compare(a, b, {"pe"}, *ParseMetric("epochs_to(0.9)"), &values,
                                  stats::IntervalKind::kStudentT);
  ASSERT_TRUE(comparison.ok()) << comparison.status();
  const PairGroup& group = comparison->groups.at(0);
  EXPECT_FALSE(group.difference.mean || group.test);
  EXPECT_EQ(group.difference.censored, 1);
  EXPECT_EQ(ToJson(*comparison, group)["not_reached"], 1);
}

TEST(CompareExamplesTest, OtherExamplesAreNotCompared) {
  auto comparison = Of({MakeJob(1, "rope", 0, kDone, 900)}, {MakeJob(3, "mla", 0, kDone, 900)});
  ASSERT_TRUE(comparison.ok());
  CompareExamples({Judged(1, "f4"), Judged(3, "6c", 7)}, *comparison);
  EXPECT_FALSE(comparison->groups[0].pairs[0].examples.has_value()) << "another number is scored";
  CompareExamples({Judged(1, "f4"), Judged(3, "6c4")}, *comparison);
  EXPECT_FALSE(comparison->groups[0].pairs[0].examples.has_value()) << "another test set";
}

TEST(CompareTest, NothingToPair) {
  const auto comparison = Of({}, {MakeJob(3, "mla", 0, kDone, 700)});
  ASSERT_TRUE(comparison.ok()) << comparison.status();
  EXPECT_THAT(comparison->groups, IsEmpty());
  EXPECT_EQ(comparison->unpaired_b, 1u);
}

}  // namespace
}  // namespace pelab::results
