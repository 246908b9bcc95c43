#include "core/results/cells.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>

#include "tests/unit/core/results/jobs_fixture.h"

namespace pelab::results {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

CellTable Build(const std::vector<v1::JobRow>& jobs,
                const std::vector<std::string>& group_by = {}) {
  auto table = BuildCells(JobList(jobs), "test_accuracy", group_by);
  EXPECT_TRUE(table.ok()) << table.status();
  return table.value_or(CellTable());
}

TEST(CellsTest, SeedsOfOneConfigurationAreOneCell) {
  const CellTable table =
      Build({MakeJob(1, "nope", 0, kDone, 100), MakeJob(2, "nope", 1, kDone, 300),
             MakeJob(3, "rope", 0, kDone, 700), MakeJob(4, "rope", 1, kDone, 700)});
  EXPECT_THAT(table.columns, ElementsAre("pe", "task"))
      << "data sets that follow the seed are no axis";
  ASSERT_EQ(table.cells.size(), 2u);
  EXPECT_EQ(table.cells[0].Label(), "nope distance");
  EXPECT_DOUBLE_EQ(*table.cells[0].summary.mean, 0.2);
  EXPECT_EQ(table.cells[1].summary.n, 2);
  EXPECT_TRUE(table.complete());
}

TEST(CellsTest, AFixedDataSeedIsOneCellToo) {
  const CellTable table = Build({MakeJob(1, "nope", 0, kDone, 100, "0.001", 7),
                                 MakeJob(2, "nope", 1, kDone, 300, "0.001", 7)});
  EXPECT_EQ(table.cells.size(), 1u);
  const CellTable zero = Build({MakeJob(1, "nope", 0, kDone, 100, "0.001", 0),
                                MakeJob(2, "nope", 1, kDone, 300, "0.001", 0)});
  EXPECT_EQ(zero.cells.size(), 1u) << "seed 0 with data seed 0 is fixed like the others";
}

TEST(CellsTest, ASeedThatIsTheDataSeedByAccidentIsOneOfItsReplicates) {
  const std::vector<v1::JobRow> jobs = {
      MakeJob(1, "rope", 6, kDone, 100, "0.001", 7), MakeJob(2, "rope", 7, kDone, 100, "0.001", 7),
      MakeJob(3, "rope", 6, kDone, 100, "0.001", 6), MakeJob(4, "rope", 8, kDone, 100, "0.001", 8)};
  const CellTable table = Build(jobs);
  EXPECT_THAT(table.columns, ElementsAre("pe", "task", "task.data_seed"));
  ASSERT_EQ(table.cells.size(), 2u) << "data of seed 7, and data that follow";
  EXPECT_EQ(table.cells[0].Label(), "rope distance 7");
  EXPECT_EQ(table.cells[0].jobs.size(), 2u);
  EXPECT_EQ(table.cells[1].Label(), "rope distance seed");
  EXPECT_THAT(Build(jobs, {"pe"}).mixed, ElementsAre("task.data_seed"));
  const CellTable by_value = Build(jobs, {"task.data_seed"});
  ASSERT_EQ(by_value.cells.size(), 3u) << "as they are stored: 7, 6, 8";
  EXPECT_EQ(by_value.cells[1].Label(), "6");
}

TEST(CellsTest, WhatIsEachJobsOwnCanGroup) {
  std::vector<v1::JobRow> jobs = {MakeJob(1, "rope", 0, kDone, 100),
                                  MakeJob(2, "rope", 1, kDone, 300),
                                  MakeJob(3, "nope", 1, kDone, 500)};
  jobs[2].set_device("cpu");
  const CellTable by_seed = Build(jobs, {"seed"});
  ASSERT_EQ(by_seed.cells.size(), 2u);
  EXPECT_EQ(by_seed.cells[1].jobs.size(), 2u);
  EXPECT_EQ(Build(jobs, {"device"}).cells[1].Label(), "cpu");
  EXPECT_EQ(Build(jobs, {"train.lr", "model.layers"}).cells[0].Label(), "0.001 -");
}

TEST(CellsTest, WhatElseDiffersBecomesAColumn) {
  const CellTable table = Build(
      {MakeJob(1, "rope", 0, kDone, 100, "0.001"), MakeJob(2, "rope", 1, kDone, 100, "0.001"),
       MakeJob(3, "rope", 0, kDone, 500, "0.003"), MakeJob(4, "nope", 0, kDone, 500, "0.003")});
  EXPECT_THAT(table.columns, ElementsAre("pe", "task", "train.lr"));
  ASSERT_EQ(table.cells.size(), 3u);
  EXPECT_EQ(table.cells[1].Label(), "rope distance 0.003");
}

// A spec leaves out a field that has its legacy value.
TEST(CellsTest, AFieldThatIsNotWrittenHasItsLegacyValue) {
  const CellTable table = Build({MakeJob(1, "rope", 0, kDone, 100),
                                 MakeJob(2, "rope", 0, kDone, 300, R"(0.001,"precision":"bf16")")});
  EXPECT_THAT(table.columns, ElementsAre("pe", "task", "train.precision"));
  ASSERT_EQ(table.cells.size(), 2u);
  EXPECT_EQ(table.cells[0].Label(), "rope distance float32");
  EXPECT_EQ(table.cells[1].Label(), "rope distance bf16");
}

TEST(CellsTest, OnlySucceededJobsCount) {
  const CellTable table =
      Build({MakeJob(1, "rope", 0, kDone, 600), MakeJob(2, "rope", 1, v1::JOB_STATE_RUNNING, 999),
             MakeJob(3, "rope", 2, v1::JOB_STATE_QUEUED, 0),
             MakeJob(4, "rope", 3, v1::JOB_STATE_FAILED, 999),
             MakeJob(5, "rope", 4, v1::JOB_STATE_CANCELLED, 999)});
  ASSERT_EQ(table.cells.size(), 1u);
  const stats::SeedSummary& s = table.cells[0].summary;
  EXPECT_EQ(s.n, 1);
  EXPECT_EQ(s.missing, 2);
  EXPECT_EQ(s.failed, 1);
  EXPECT_EQ(s.cancelled, 1);
  EXPECT_EQ(MissingText(s), "2 missing, 1 failed, 1 cancelled");
  EXPECT_EQ(s.mean, 0.6);
  EXPECT_FALSE(table.complete());
  const render::Json json = ToJson(table, table.cells[0]);
  EXPECT_EQ(json["complete"], false);
  EXPECT_EQ(json["failed"], 1);
  EXPECT_EQ(json["cancelled"], 1);
  EXPECT_EQ(json["seeds"], render::Json::parse("[0,1,2,3,4]"));
  EXPECT_TRUE(json["half_width"].is_null());
}

TEST(CellsTest, GroupByTellsWhatItMixes) {
  const CellTable table = Build(
      {MakeJob(1, "rope", 0, kDone, 100, "0.001"), MakeJob(2, "rope", 0, kDone, 500, "0.003")},
      {"pe"});
  ASSERT_EQ(table.cells.size(), 1u);
  EXPECT_THAT(table.mixed, ElementsAre("train.lr"));
  const CellTable by_lr = Build(
      {MakeJob(1, "rope", 0, kDone, 100, "0.001"), MakeJob(2, "rope", 0, kDone, 500, "0.003")},
      {"pe", "train.lr"});
  EXPECT_EQ(by_lr.cells.size(), 2u);
  EXPECT_TRUE(by_lr.mixed.empty());
}

// A job with the switches of its protocol.
v1::JobRow Switched(std::int64_t id, const std::string& protocol, const std::string& mask,
                    const std::string& source, const std::string& lr = "0.001") {
  v1::JobRow job = MakeJob(id, "rope", 0, kDone, 100);
  job.set_protocol(protocol);
  job.set_spec_json(
      R"({"model":{"kv_source":")" + source + R"(","mask":")" + mask +
      R"("},"pe":{"name":"rope"},"seed":0,"task":{"name":"distance"},"train":{"lr":)" + lr + "}}");
  return job;
}

TEST(CellsTest, TheProtocolIsAColumnInPlaceOfItsSwitches) {
  const CellTable table =
      Build({Switched(1, "clean", "causal", "self"), Switched(2, "published", "none", "input")});
  EXPECT_THAT(table.columns, ElementsAre("pe", "task", "protocol"));
  ASSERT_EQ(table.cells.size(), 2u);
  EXPECT_EQ(table.cells[1].Label(), "rope distance published");
}

TEST(CellsTest, AnAxisBesideTheProtocolIsAColumnToo) {
  const CellTable table = Build({Switched(1, "clean", "causal", "self"),
                                 Switched(2, "clean", "causal", "self", "0.003"),
                                 Switched(3, "published", "none", "input"),
                                 Switched(4, "published", "none", "input", "0.003")});
  EXPECT_THAT(table.columns, ElementsAre("pe", "task", "protocol", "train.lr"));
  EXPECT_EQ(table.cells.size(), 4u);
}

TEST(CellsTest, ACustomProtocolSaysWhichSwitchDeparts) {
  const CellTable table =
      Build({Switched(1, "clean", "causal", "self"), Switched(2, "published", "none", "input"),
             Switched(3, "custom", "none", "self")});
  EXPECT_THAT(table.columns, ElementsAre("pe", "task", "protocol", "model.mask"))
      << "the mask is what the custom job has unlike clean";
  EXPECT_EQ(table.cells[2].Label(), "rope distance custom none");
  const CellTable only_custom =
      Build({Switched(1, "custom", "none", "self"), Switched(2, "custom", "causal", "input")});
  EXPECT_THAT(only_custom.columns, ElementsAre("pe", "task", "model.kv_source", "model.mask"));
}

TEST(CellsTest, MeansOverProtocolsSaySo) {
  const CellTable table = Build(
      {Switched(1, "clean", "causal", "self"), Switched(2, "published", "none", "input")}, {"pe"});
  EXPECT_THAT(table.mixed, ElementsAre("protocol"));
}

TEST(CellsTest, AJobThatIsAnalyzedAgainKeepsItsResult) {
  v1::JobRow job = MakeJob(1, "rope", 0, v1::JOB_STATE_QUEUED, 0);
  job.set_test_accuracy(0.75);
  EXPECT_EQ(Build({job}).cells[0].summary.missing, 1);
  job.set_trained(true);
  EXPECT_EQ(Build({job}).cells[0].summary.mean, 0.75);
  EXPECT_TRUE(Build({job}).complete());
}

TEST(CellsTest, OneSeedEach) {
  CellTable table =
      Build({MakeJob(1, "rope", 3, kDone, 100), MakeJob(2, "rope", 5, v1::JOB_STATE_FAILED, 0)});
  OneSeedEach(table);
  ASSERT_EQ(table.cells.size(), 2u);
  EXPECT_EQ(table.cells[0].Label(), "rope distance seed 3");
  EXPECT_TRUE(table.cells[0].summary.complete());
  EXPECT_EQ(table.cells[1].summary.failed, 1);
}

v1::JobRow OwnJob(std::int64_t id, char digit, const std::string& chance,
                  const std::string& scored = "all") {
  v1::JobRow job = MakeJob(id, "rope", 0, kDone, 100);
  job.set_task("own:toy");
  job.set_spec_json(Concat(R"({"format":1,"pe":{"name":"rope"},"seed":0,"task":{"chance":)", chance,
                           R"(,"file":")", std::string(64, digit),
                           R"(","name":"own","scored_classes":")", scored, R"("}})"));
  return job;
}

TEST(CellsTest, HashesAreShortForPeopleAndWholeInJson) {
  CellTable table = Build({OwnJob(1, 'a', "0.5"), OwnJob(2, 'b', "0.25")});
  EXPECT_THAT(table.columns, ElementsAre("pe", "task", "task.file"));
  EXPECT_EQ(table.cells[0].Label(), "rope own:toy aaaaaaaa");
  EXPECT_EQ(ToJson(table, table.cells[1])["task.file"], std::string(64, 'b'));
  OneSeedEach(table);
  EXPECT_EQ(table.cells[1].Label(), "rope own:toy bbbbbbbb seed 0");
  EXPECT_EQ(table.cells[1].values[2], std::string(64, 'b'));
}

TEST(CellsTest, ChanceIsToldUnlessItFollows) {
  const CellTable scored = Build({OwnJob(1, 'a', "0.5"), OwnJob(2, 'a', "0.25", "nonzero")});
  EXPECT_THAT(scored.columns, ElementsAre("pe", "task", "task.scored_classes"));
  const CellTable alone = Build({OwnJob(1, 'a', "0.5"), OwnJob(2, 'a', "0.25")});
  EXPECT_THAT(alone.columns, ElementsAre("pe", "task", "task.chance"));
}

TEST(CellsTest, UnknownNamesAreRefused) {
  EXPECT_THAT(std::string(BuildCells({}, "accuracy", {}).status().message()),
              HasSubstr("known: test_accuracy"));
  EXPECT_THAT(std::string(BuildCells({}, "test_accuracy", {"train.lrr"}).status().message()),
              HasSubstr("did you mean train.lr"));
}

}  // namespace
}  // namespace pelab::results
