// Jobs that differ only in their seed and are given to one trainer together.
#include <gmock/gmock.h>

#include <cstdint>
#include <set>
#include <vector>

#include "tests/contract/rpc/coordinator_fixture.h"

namespace pelab {
namespace {

using testing::HasSubstr;

class PacksTest : public CoordinatorTest {
 protected:
  v1::WorkerRow Worker() {
    v1::ListWorkersRequest request;
    v1::ListWorkersResponse response;
    EXPECT_TRUE(results_->ListWorkers(Context().get(), request, &response).ok());
    return response.workers_size() == 1 ? response.workers(0) : v1::WorkerRow();
  }
};

TEST_F(PacksTest, SeedsOfOneCellComeTogetherAndEndSingly) {
  Submit(Document("s", "0..4", /*epochs=*/2), "a");  // five seeds each of nope and rope
  FakeWorker worker(channel_, "w1", 1, {}, "", /*pack=*/4);
  const v1::AssignmentPack pack = worker.AwaitPack();
  ASSERT_EQ(pack.assignments_size(), 4);
  std::set<std::int64_t> seeds;
  std::vector<Script> scripts;
  for (const v1::Assignment& assignment : pack.assignments()) {
    EXPECT_EQ(assignment.pe(), "nope");
    EXPECT_EQ(assignment.slot(), 0);
    seeds.insert(assignment.seed());
    scripts.emplace_back(assignment);
  }
  EXPECT_EQ(seeds, (std::set<std::int64_t>{0, 1, 2, 3}));
  EXPECT_EQ(Worker().busy_slots(), 1);
  EXPECT_THAT(Worker().devices_json(), HasSubstr("\"pack\":4"));

  // Their events are interleaved.
  for (Script& script : scripts) worker.Send({script.Started(0, 2, 1, /*packing=*/4)});
  for (int epoch = 0; epoch < 2; ++epoch) {
    for (Script& script : scripts) worker.Send({script.Epoch(epoch)});
  }
  for (std::size_t i = 0; i < 3; ++i) {
    worker.Send({scripts[i].Ablation(), scripts[i].Finished(v1::ATTEMPT_OUTCOME_SUCCEEDED)});
    worker.AwaitAck(scripts[i].assignment().attempt_id(), scripts[i].sequence());
  }
  const auto given = [](const auto& m) { return m.has_assignment() || m.has_pack(); };
  EXPECT_EQ(worker.Count(given), 0) << "the fourth still has the slot";
  // The job is queued again, and its next attempt is told how many jobs it began with.
  worker.Send({scripts[3].Finished(v1::ATTEMPT_OUTCOME_PREEMPTED)});
  worker.AwaitAck(scripts[3].assignment().attempt_id(), scripts[3].sequence());
  worker.Leave();
  FakeWorker next(channel_, "w2", 1, {}, "", /*pack=*/4);
  const v1::Assignment again = next.AwaitAssignment();
  EXPECT_EQ(again.job_id(), scripts[3].assignment().job_id());
  EXPECT_EQ(again.execution().packing(), 4);
  EXPECT_EQ(again.max_start_epoch(), 2);
}

TEST_F(PacksTest, BetterAloneIsKeptWhateverComesWithIt) {
  Submit(Document("s", "0..4", /*epochs=*/2), "a");
  FakeWorker worker(channel_, "w1", 1, {}, "", /*pack=*/2);
  std::vector<Script> scripts;
  const v1::AssignmentPack pack = worker.AwaitPack();
  for (const v1::Assignment& assignment : pack.assignments()) scripts.emplace_back(assignment);
  ASSERT_EQ(scripts.size(), 2u);
  for (Script& script : scripts) {
    v1::Event started = script.Started(0, 2, 1, /*packing=*/2);
    started.mutable_started()->set_better_alone(true);
    worker.Send({started, script.Epoch(0), script.Epoch(1), script.Ablation(),
                 script.Finished(v1::ATTEMPT_OUTCOME_SUCCEEDED)});
  }
  EXPECT_EQ(worker.AwaitAssignment().pe(), "nope") << "one at a time";
}

TEST_F(PacksTest, AWorkerThatSaysNothingGetsOneAtATime) {
  Submit(Document("s", "0..4"), "a");
  FakeWorker worker(channel_, "old", 2);
  worker.AwaitAssignment();
  worker.AwaitAssignment();
  EXPECT_EQ(worker.Count([](const auto& m) { return m.has_pack(); }), 0);
}

TEST_F(PacksTest, NobodyTakesMoreThanSixtyFour) {
  Submit(Document("s", "0..69"), "a");
  FakeWorker worker(channel_, "greedy", 1, {}, "", /*pack=*/1'000'000);
  EXPECT_EQ(worker.AwaitPack().assignments_size(), 64);
  FakeWorker odd(channel_, "odd", 1, {}, "", /*pack=*/-7);
  EXPECT_EQ(odd.AwaitAssignment().slot(), 0);
}

}  // namespace
}  // namespace pelab
