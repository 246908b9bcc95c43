// Deleting sweeps: removes everything of the deleted sweep and nothing of other sweeps.
#include <gmock/gmock.h>

#include "core/db/check/check.h"
#include "tests/contract/store/store_fixture.h"

namespace pelab::store {
namespace {

using state::Outcome;
using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

class DeleteTest : public StoreTest {
 protected:
  void CancelWhole(std::int64_t sweep_id) {
    for (auto part = Do<Cancelled>(CancelSweep{sweep_id, 4000}); part.more;) {
      part = Do<Cancelled>(DropSlice{sweep_id, 4000});
    }
  }
  void ExpectSound() {
    if (!GetParam()) return;  // only if there is a file to check
    const auto checks = db::CheckDatabase(path_);
    ASSERT_TRUE(checks.ok()) << checks.status();
    for (const db::Check& check : *checks) {
      if (check.name == "artifacts are there at their size") continue;  // there are no files here
      EXPECT_THAT(check.problems, IsEmpty()) << check.name;
    }
  }
};
INSTANTIATE_TEST_SUITE_P(Backends, DeleteTest, testing::Bool(),
                         [](const auto& info) { return info.param ? "File" : "Memory"; });

TEST_P(DeleteTest, EverythingOfItsOwnJobsGoesAndSharedOnesStay) {
  std::vector<std::string> dropped;
  dropped_callback_ = [&](auto sha256s) { dropped = std::move(sha256s); };
  Open();
  NewCell own = Cell(0, "own");
  own.spec_json = R"({"pe":{"name":"own"}})";
  const std::int64_t sweep = Submit("a", {own, Cell(1, "shared")});
  const std::int64_t other = Submit("b", {Cell(0, "shared")});
  TrainWhole(1);
  TrainWhole(2);
  Do<Nothing>(AppendLog{assignment_.attempt_id, assignment_.token, 0, "words"});
  ASSERT_EQ(SweepState(sweep), "finished");
  const auto counted = Do<DeletionCounted>(CountDeletion{sweep});
  EXPECT_EQ(counted.jobs_deleted, 1);
  EXPECT_EQ(counted.jobs_kept, 1);
  EXPECT_FALSE(counted.next.has_value());
  const auto deleted = Do<SweepDeleted>(DeleteSweep{sweep, 6000});
  EXPECT_TRUE(deleted.found);
  EXPECT_FALSE(deleted.live || deleted.more);
  EXPECT_EQ(deleted.jobs_deleted, 1);
  EXPECT_EQ(deleted.jobs_kept, 1);
  EXPECT_THAT(dropped, Contains(kWeightsHash));
  EXPECT_EQ(Text("SELECT group_concat(sweep_id) FROM sweeps"), absl::StrCat(other));
  EXPECT_EQ(Text("SELECT group_concat(job_id) FROM jobs"), "2");
  for (const char* table : {"analyses", "attempts"}) {
    EXPECT_EQ(Text(absl::StrCat("SELECT group_concat(DISTINCT job_id) FROM ", table)), "2")
        << table;
  }
  EXPECT_EQ(Text("SELECT count(*) FROM stored_epochs"), "3");
  EXPECT_EQ(Text("SELECT count(*) FROM configurations"), "1");
  EXPECT_EQ(Text("SELECT count(*) FROM sweep_counts"), "1");
  EXPECT_EQ(Text("SELECT count(*) FROM submissions"), "1");
  EXPECT_FALSE(Do<SweepDeleted>(DeleteSweep{sweep, 6000}).found);
  EXPECT_FALSE(Do<SweepDeleted>(DeleteSlice{sweep, 6000}).found);
  ExpectSound();
  // Its token and its name are free again, and its jobs are trained again.
  EXPECT_THAT((Submit("a", {own}), slice_.ready), SizeIs(1));
}

TEST_P(DeleteTest, ALiveSweepIsNotDeletedAndACancelledOnesJobStaysForTheOther) {
  const std::int64_t sweep = Submit("a", {Cell(0, "k0")});
  EXPECT_TRUE(Do<SweepDeleted>(DeleteSweep{sweep, 6000}).live);
  EXPECT_EQ(SweepState(sweep), "active");
  const std::int64_t other = Submit("b", {Cell(0, "k0")});
  CancelWhole(sweep);
  CancelWhole(other);
  EXPECT_EQ(Do<SweepDeleted>(DeleteSweep{sweep, 6000}).jobs_kept, 1)
      << "the other has withdrawn its claim, and shows the job all the same";
  EXPECT_EQ(Do<SweepDeleted>(DeleteSweep{other, 6000}).jobs_deleted, 1);
  EXPECT_EQ(Text("SELECT count(*) FROM jobs"), "0");
  EXPECT_FALSE(Do<SweepDeleted>(DeleteSweep{99, 6000}).found);
  ExpectSound();
}

TEST_P(DeleteTest, ItWaitsForTheWorkerThatHasYetToStop) {
  const std::int64_t sweep = Submit("a", {Cell(0, "k0"), Cell(1, "k1")});
  Attempt running = Assign(1);
  Train(running, 0, 1);
  CancelWhole(sweep);
  auto deleted = Do<SweepDeleted>(DeleteSweep{sweep, 6000});
  EXPECT_EQ(deleted.jobs_deleted, 1);
  EXPECT_TRUE(deleted.more);
  EXPECT_EQ(Text("SELECT count(*) FROM v_sweeps"), "0") << "nobody sees it any more";
  EXPECT_EQ(Text("SELECT count(*) FROM v_sweep_jobs"), "0");
  deleted = Do<SweepDeleted>(DeleteSlice{sweep, 6000});
  EXPECT_TRUE(deleted.more && deleted.waits);
  if (GetParam()) {
    Open();
    std::vector<RecoveredSweep> sweeps;
    ASSERT_TRUE(
        store_->Recover([&](auto s) { sweeps.push_back(s); }, [](auto) {}, [](auto) {}, [](auto) {})
            .ok());
    ASSERT_THAT(sweeps, SizeIs(1));
    EXPECT_TRUE(sweeps[0].deleting);
    ExpectSound();
  }
  Event(running.Next(EndEvent(v1::ATTEMPT_OUTCOME_CANCELLED)));
  deleted = Do<SweepDeleted>(DeleteSlice{sweep, 6000});
  EXPECT_FALSE(deleted.more);
  EXPECT_EQ(Text("SELECT count(*) FROM sweeps"), "0");
  EXPECT_EQ(Text("SELECT count(*) FROM attempts"), "0");
  ExpectSound();
}

TEST_P(DeleteTest, AnalysesThatRunForNobodysSweepAreStopped) {
  const std::int64_t sweep = Submit("a", {Cell(0, "k0")}, false, 0, "[]");
  TrainWhole(1);
  // Requested by job number; the job's sweep was cancelled later.
  Do<Analyzed>(Analyze{.jobs = {1}, .analyses = {{"layer_ablation", 1, "{}"}}, .now = 5000});
  ASSERT_EQ(JobState(1), "queued");
  Text("UPDATE sweeps SET state = 'finished'");
  const auto deleted = Do<SweepDeleted>(DeleteSweep{sweep, 6000});
  EXPECT_THAT(deleted.cancelled.jobs, ElementsAre(1));
  EXPECT_EQ(deleted.jobs_deleted, 1);
  EXPECT_EQ(Text("SELECT count(*) FROM analysis_requests"), "0");
}

TEST_P(DeleteTest, ALargeSweepGoesInSlices) {
  constexpr int kJobs = 230;
  std::vector<NewCell> cells;
  for (int i = 0; i < kJobs; ++i) cells.push_back(Cell(i, absl::StrCat("k", i)));
  const std::int64_t sweep = Submit("a", cells, false, 0, "[]");
  Submit("b", {Cell(0, "k7"), Cell(1, "other")}, false, 0, "[]");
  CancelWhole(sweep);
  auto deleted = Do<SweepDeleted>(DeleteSweep{sweep, 6000});
  std::int64_t jobs = deleted.jobs_deleted;
  std::int64_t kept = deleted.jobs_kept;
  int slices = 1;
  while (deleted.more) {
    EXPECT_LE(deleted.jobs_deleted, 50);
    deleted = Do<SweepDeleted>(DeleteSlice{sweep, 6000});
    jobs += deleted.jobs_deleted;
    kept += deleted.jobs_kept;
    ASSERT_LT(++slices, 20);
  }
  EXPECT_EQ(jobs, kJobs - 1);
  EXPECT_EQ(kept, 1);
  EXPECT_GT(slices, 4);
  EXPECT_EQ(Text("SELECT count(*) FROM jobs"), "2");
  ExpectSound();
}

}  // namespace
}  // namespace pelab::store
