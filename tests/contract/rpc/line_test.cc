// The main path over RPC: a sweep is submitted, assigned, trained by a played worker, acknowledged
// and read back.
#include <gmock/gmock.h>

#include <algorithm>
#include <cstdint>
#include <set>

#include "tests/contract/rpc/coordinator_fixture.h"

namespace pelab {
namespace {

TEST_F(CoordinatorTest, ASweepGoesTheWholeLine) {
  const v1::SubmitResponse submitted = Submit(Document("line"), "token-1");
  EXPECT_TRUE(submitted.expanded());
  EXPECT_EQ(submitted.counts().total(), 4u);
  EXPECT_EQ(submitted.counts().new_jobs(), 4u);
  EXPECT_EQ(GetSweep("line").waiting_reason(), "no worker is connected");

  FakeWorker worker(channel_, "w1", 2);
  const v1::Welcome welcome = worker.AwaitWelcome();
  EXPECT_EQ(welcome.heartbeat_ms(), 200u);
  EXPECT_EQ(welcome.lease_ms(), 30'000u);
  std::set<std::string> keys;
  std::set<std::int64_t> seen_tokens;
  for (int i = 0; i < 4; ++i) {
    const v1::Assignment assignment = worker.AwaitAssignment();
    keys.insert(assignment.key());
    seen_tokens.insert(static_cast<std::int64_t>(assignment.token()));
    ASSERT_EQ(assignment.analyses_size(), 1);
    EXPECT_EQ(assignment.analyses(0).name(), "head_ablation");
    EXPECT_EQ(assignment.max_start_epoch(), 0);
    Script script(assignment);
    worker.Send(script.Whole(3));
    const v1::Ack ack = worker.AwaitAck(assignment.attempt_id(), script.sequence());
    EXPECT_FALSE(ack.superseded());
  }
  EXPECT_EQ(keys.size(), 4u);
  EXPECT_EQ(seen_tokens.size(), 4u);
  const v1::Sweep sweep =
      AwaitSweep("line", [](const v1::Sweep& s) { return s.state() == v1::SWEEP_STATE_FINISHED; });
  EXPECT_EQ(sweep.jobs().succeeded(), 4u);
  EXPECT_EQ(sweep.epochs_done(), 12u);

  const v1::ListCurvesResponse curves = Curves("line");
  ASSERT_EQ(curves.rows_size(), 12);
  for (int i = 0; i < 12; ++i) {
    const int epoch = i % 3;
    EXPECT_EQ(curves.rows(i).epoch(), epoch);
    EXPECT_EQ(curves.rows(i).train_loss(), 1.0 / (3 + epoch));  // to the last bit
    EXPECT_EQ(curves.rows(i).test_correct(), 40 + epoch);
    EXPECT_EQ(curves.rows(i).test_accuracy(), (40 + epoch) / 97.0);
  }
  v1::ListHeadAblationsRequest request;
  request.mutable_filter()->set_sweep("line");
  v1::ListHeadAblationsResponse ablations;
  ASSERT_TRUE(results_->ListHeadAblations(Context().get(), request, &ablations).ok());
  ASSERT_EQ(ablations.rows_size(), 4 * 4);
  EXPECT_EQ(ablations.rows(2).layer(), 1);
  EXPECT_EQ(ablations.rows(2).head(), 0);
  EXPECT_EQ(ablations.rows(2).correct(), 30);
  EXPECT_EQ(ablations.rows(2).accuracy_drop(), 12 / 97.0);
  const v1::ListJobsResponse jobs = Jobs("line");
  EXPECT_EQ(jobs.jobs_size(), 4);
  for (const v1::JobRow& job : jobs.jobs()) {
    EXPECT_EQ(job.state(), v1::JOB_STATE_SUCCEEDED);
    EXPECT_EQ(job.test_correct(), 42);
    EXPECT_EQ(job.wall_seconds(), 1.5);
    EXPECT_EQ(job.device(), "cpu");
    EXPECT_FALSE(job.has_error());
  }
}

TEST_F(CoordinatorTest, AnEpochOfOtherDataThanTheJobsFailsItsAttempt) {
  Submit(Document("s", "[0]"), "a");
  FakeWorker worker(channel_, "w1", 1);
  for (const bool train : {false, true}) {
    Script script(worker.AwaitAssignment());
    v1::Event started = script.Started(0, 3);
    v1::Event epoch = script.Epoch(0);
    if (train) {
      epoch.mutable_epoch()->set_train_total(98);
    } else {
      epoch.mutable_epoch()->set_test_total(96);
    }
    worker.Send({started, epoch});
    EXPECT_TRUE(worker.AwaitAck(script.assignment().attempt_id(), script.sequence()).superseded());
    v1::ListAttemptsResponse attempts;
    ASSERT_TRUE(results_->ListAttempts(Context().get(), {}, &attempts).ok());
    std::string errors;
    for (const auto& row : attempts.rows()) absl::StrAppend(&errors, row.error(), "\n");
    EXPECT_THAT(errors,
                testing::HasSubstr(
                    train ? "\"train_total\" is 98; allowed: 99, as the job's training examples"
                          : "\"test_total\" is 96; allowed: 97, as the job's test examples"));
  }
  EXPECT_EQ(Curves("s").rows_size(), 0);
}

TEST_F(CoordinatorTest, TheSameAgainIsStoredAndOneSeedMoreIsNew) {
  Submit(Document("first"), "a");
  FakeWorker worker(channel_, "w1", 4);
  for (int i = 0; i < 4; ++i) {
    Script script(worker.AwaitAssignment());
    worker.Send(script.Whole(3));
    worker.AwaitAck(script.assignment().attempt_id(), script.sequence());
  }
  const v1::SubmitResponse again = Submit(Document("second"), "b");
  EXPECT_EQ(again.counts().stored(), 4u);
  EXPECT_EQ(again.counts().new_jobs(), 0u);
  EXPECT_EQ(GetSweep("second").state(), v1::SWEEP_STATE_FINISHED);
  const v1::SubmitResponse more = Submit(Document("third", "[0, 1, 2]"), "c");
  EXPECT_EQ(more.counts().stored(), 4u);
  EXPECT_EQ(more.counts().new_jobs(), 2u);
  const v1::SubmitResponse both = Submit(Document("fourth", "[1, 2]"), "d");
  EXPECT_EQ(both.counts().stored(), 2u);
  EXPECT_EQ(both.counts().in_flight(), 2u);
  const v1::SubmitResponse fresh = Submit(Document("fifth"), "e", /*fresh=*/true);
  EXPECT_EQ(fresh.counts().new_jobs(), 4u);
}

TEST_F(CoordinatorTest, AClientTokenIsAnsweredWithItsFirstSubmission) {
  const v1::SubmitResponse first = Submit(Document("once"), "same-token");
  const v1::SubmitResponse second = Submit(Document("once"), "same-token");
  EXPECT_FALSE(first.repeated_token());
  EXPECT_TRUE(second.repeated_token());
  EXPECT_EQ(first.sweep_id(), second.sweep_id());
  EXPECT_EQ(second.counts().new_jobs(), 4u);
  EXPECT_EQ(GetSweep("once").jobs().queued(), 4u);
}

}  // namespace
}  // namespace pelab
