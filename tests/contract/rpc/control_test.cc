// Every control command while sweeps run, over RPC.
#include <gmock/gmock.h>

#include <cstdint>
#include <set>

#include "tests/contract/rpc/coordinator_fixture.h"

namespace pelab {
namespace {

using testing::HasSubstr;

constexpr char kOneSeed[] = "[0]";  // two encodings: two jobs

class ControlTest : public CoordinatorTest {
 protected:
  v1::SweepControl Pause(const std::string& sweep) {
    v1::PauseRequest request;
    request.mutable_sweep()->set_sweep(sweep);
    v1::SweepControl control;
    EXPECT_TRUE(sweeps_->Pause(Context().get(), request, &control).ok());
    return control;
  }
  v1::SweepControl Resume(const std::string& sweep) {
    v1::ResumeRequest request;
    request.mutable_sweep()->set_sweep(sweep);
    v1::SweepControl control;
    EXPECT_TRUE(sweeps_->Resume(Context().get(), request, &control).ok());
    return control;
  }
  grpc::Status Retry(const std::string& sweep, const std::string& job,
                     v1::RetryResponse* response) {
    v1::RetryRequest request;
    if (job.empty()) {
      request.mutable_sweep()->set_sweep(sweep);
    } else {
      request.set_job(job);
    }
    return sweeps_->Retry(Context().get(), request, response);
  }
  grpc::Status Extend(const std::string& sweep, const std::string& seeds,
                      v1::ExtendResponse* response, bool dry_run = false) {
    v1::ExtendRequest request;
    request.mutable_sweep()->set_sweep(sweep);
    request.set_seeds(seeds);
    request.set_dry_run(dry_run);
    return sweeps_->Extend(Context().get(), request, response);
  }
  grpc::Status Cancel(const std::string& sweep, v1::CancelResponse* response) {
    v1::CancelRequest request;
    request.mutable_sweep()->set_sweep(sweep);
    return sweeps_->Cancel(Context().get(), request, response);
  }
  v1::DrainWorkerResponse Drain(const std::string& worker, v1::Drain::Mode mode) {
    v1::DrainWorkerRequest request;
    request.set_worker(worker);
    request.set_mode(mode);
    v1::DrainWorkerResponse response;
    EXPECT_TRUE(fleet_->DrainWorker(Context().get(), request, &response).ok());
    return response;
  }
  static v1::Drain::Mode AwaitDrain(FakeWorker& worker) {
    return worker.Await([](const auto& m) { return m.has_drain(); }).drain().mode();
  }
  // Runs the worker's next job to its end and returns its seed.
  std::int64_t RunOne(FakeWorker& worker, v1::AttemptOutcome outcome) {
    Script script(worker.AwaitAssignment());
    if (outcome == v1::ATTEMPT_OUTCOME_SUCCEEDED) {
      worker.Send(script.Whole(3));
    } else {
      worker.Send({script.Started(0, 3), script.Finished(outcome, v1::ERROR_KIND_BAD_SPEC, "no")});
    }
    worker.AwaitAck(script.assignment().attempt_id(), script.sequence());
    return script.assignment().seed();
  }
  v1::WorkerRow Worker(const std::string& id) {
    v1::ListWorkersResponse response;
    EXPECT_TRUE(results_->ListWorkers(Context().get(), {}, &response).ok());
    for (const v1::WorkerRow& row : response.workers()) {
      if (row.worker_id() == id) return row;
    }
    return {};
  }
};

TEST_F(ControlTest, APausedSweepIsPassedOverUntilItIsResumed) {
  Submit(Document("held", kOneSeed), "a");
  auto worker = std::make_unique<FakeWorker>(channel_, "w1", 1);
  Script running(worker->AwaitAssignment());
  const v1::SweepControl paused = Pause("held");
  EXPECT_TRUE(paused.changed());
  EXPECT_TRUE(paused.paused());
  EXPECT_FALSE(Pause("held").changed());
  const v1::Sweep row = GetSweep("held");
  EXPECT_TRUE(row.paused());
  EXPECT_EQ(row.state(), v1::SWEEP_STATE_ACTIVE);
  EXPECT_EQ(row.waiting_reason(), "paused");
  // The running job continues to its end; then the slot goes to another job.
  worker->Send(running.Whole(3));
  Submit(Document("other", "[9]"), "b");
  EXPECT_EQ(RunOne(*worker, v1::ATTEMPT_OUTCOME_SUCCEEDED), 9);
  worker.reset();
  Restart();
  worker = std::make_unique<FakeWorker>(channel_, "w1", 1);
  EXPECT_EQ(RunOne(*worker, v1::ATTEMPT_OUTCOME_SUCCEEDED), 9);
  EXPECT_EQ(GetSweep("held").jobs().queued(), 1u);
  const v1::SweepControl resumed = Resume("held");
  EXPECT_TRUE(resumed.changed());
  EXPECT_FALSE(resumed.paused());
  EXPECT_EQ(RunOne(*worker, v1::ATTEMPT_OUTCOME_SUCCEEDED), 0);
  AwaitSweep("held", [](const auto& s) { return s.state() == v1::SWEEP_STATE_FINISHED; });
  EXPECT_FALSE(Pause("held").paused()) << "it has ended";
  v1::PauseRequest nobody;
  nobody.mutable_sweep()->set_sweep("nobody");
  v1::SweepControl control;
  EXPECT_EQ(sweeps_->Pause(Context().get(), nobody, &control).error_code(),
            grpc::StatusCode::NOT_FOUND);
}

TEST_F(ControlTest, AJobThatAnotherSweepClaimsRunsThoughItsFirstSweepIsPaused) {
  Submit(Document("held", "[0, 1]"), "a");
  Pause("held");
  FakeWorker worker(channel_, "w1", 1);
  worker.AwaitWelcome();
  Submit(Document("other", "[1]"), "b");
  EXPECT_EQ(RunOne(worker, v1::ATTEMPT_OUTCOME_SUCCEEDED), 1);
  EXPECT_EQ(RunOne(worker, v1::ATTEMPT_OUTCOME_SUCCEEDED), 1);
  AwaitSweep("other", [](const auto& s) { return s.state() == v1::SWEEP_STATE_FINISHED; });
  EXPECT_EQ(GetSweep("held").jobs().queued(), 2u);
}

TEST_F(ControlTest, APriorityChangesWhatStartsNext) {
  Submit(Document("first", "[1]"), "a");
  Submit(Document("second", "[2]"), "b");
  v1::SetPriorityRequest request;
  request.mutable_sweep()->set_sweep("second");
  request.set_priority(5);
  v1::SweepControl control;
  ASSERT_TRUE(sweeps_->SetPriority(Context().get(), request, &control).ok());
  EXPECT_TRUE(control.changed());
  EXPECT_EQ(control.priority(), 5);
  Restart();  // the setting is kept
  FakeWorker worker(channel_, "w1", 1);
  EXPECT_EQ(RunOne(worker, v1::ATTEMPT_OUTCOME_SUCCEEDED), 2);
  EXPECT_EQ(RunOne(worker, v1::ATTEMPT_OUTCOME_SUCCEEDED), 2);
  EXPECT_EQ(RunOne(worker, v1::ATTEMPT_OUTCOME_SUCCEEDED), 1);
  request.set_priority(1001);
  EXPECT_THAT(sweeps_->SetPriority(Context().get(), request, &control).error_message(),
              HasSubstr("allowed: -1000 to 1000"));
}

TEST_F(ControlTest, RetryRunsFailedJobsAgainAndTheSweepFinishesAgain) {
  Submit(Document("s", kOneSeed), "a");
  FakeWorker worker(channel_, "w1", 1);
  RunOne(worker, v1::ATTEMPT_OUTCOME_FAILED);
  RunOne(worker, v1::ATTEMPT_OUTCOME_SUCCEEDED);
  AwaitSweep("s", [](const auto& s) { return s.state() == v1::SWEEP_STATE_FINISHED; });
  v1::RetryResponse response;
  ASSERT_TRUE(Retry("s", "", &response).ok());
  EXPECT_EQ(response.queued(), 1u);
  EXPECT_EQ(response.nothing(), 1u);
  EXPECT_EQ(response.next(), "");
  RunOne(worker, v1::ATTEMPT_OUTCOME_SUCCEEDED);
  const v1::Sweep sweep =
      AwaitSweep("s", [](const auto& s) { return s.state() == v1::SWEEP_STATE_FINISHED; });
  EXPECT_EQ(sweep.jobs().succeeded(), 2u);
  ASSERT_TRUE(Retry("s", "", &response).ok());
  EXPECT_EQ(response.queued(), 0u);
  EXPECT_EQ(GetSweep("s").state(), v1::SWEEP_STATE_FINISHED);
  EXPECT_EQ(Retry("", "999", &response).error_code(), grpc::StatusCode::NOT_FOUND);
}

TEST_F(ControlTest, ARetryOfACancelledSweepSaysWhatToDo) {
  Submit(Document("s", kOneSeed), "a");
  v1::CancelResponse cancelled;
  ASSERT_TRUE(Cancel("s", &cancelled).ok());
  v1::RetryResponse response;
  const grpc::Status refused = Retry("s", "", &response);
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_THAT(refused.error_message(), HasSubstr("submit its document again"));
  EXPECT_THAT(Retry("", "1", &response).error_message(), HasSubstr("submit one of them again"));
  v1::ExtendResponse extended;
  EXPECT_THAT(Extend("s", "5", &extended).error_message(),
              HasSubstr("submit its document again, which reopens it"));
  // After that the jobs are queued again, and a single one can be cancelled and retried.
  Submit(Document("s", kOneSeed), "b");
  v1::CancelRequest one;
  one.set_job("1");
  ASSERT_TRUE(sweeps_->Cancel(Context().get(), one, &cancelled).ok());
  ASSERT_TRUE(Retry("", "1", &response).ok());
  EXPECT_EQ(response.queued(), 1u);
}

TEST_F(ControlTest, ExtendAddsSeedsAndTrainsNothingAgain) {
  Submit(Document("s", "[0, 1]"), "a");
  FakeWorker worker(channel_, "w1", 1);
  for (int i = 0; i < 4; ++i) RunOne(worker, v1::ATTEMPT_OUTCOME_SUCCEEDED);
  AwaitSweep("s", [](const auto& s) { return s.state() == v1::SWEEP_STATE_FINISHED; });
  v1::ExtendResponse response;
  ASSERT_TRUE(Extend("s", "1..2,7", &response, /*dry_run=*/true).ok());
  EXPECT_EQ(response.new_seeds(), "2,7");
  EXPECT_EQ(response.counts().new_jobs(), 4u);
  EXPECT_EQ(GetSweep("s").state(), v1::SWEEP_STATE_FINISHED);
  // One of the jobs belongs to another sweep already.
  Submit(Document("t", "[7]"), "b");
  RunOne(worker, v1::ATTEMPT_OUTCOME_SUCCEEDED);
  response.Clear();
  ASSERT_TRUE(Extend("s", "1..2,7", &response).ok());
  EXPECT_EQ(response.new_seeds(), "2,7");
  EXPECT_EQ(response.cells(), 4u);
  EXPECT_TRUE(response.expanded());
  EXPECT_EQ(response.counts().total(), 4u);
  EXPECT_EQ(response.counts().new_jobs(), 2u);
  EXPECT_EQ(response.counts().stored(), 1u);
  EXPECT_EQ(response.counts().in_flight(), 1u);
  const v1::Sweep row = GetSweep("s");
  EXPECT_EQ(row.state(), v1::SWEEP_STATE_ACTIVE);
  EXPECT_EQ(row.cells(), 8u);
  EXPECT_EQ(row.extensions_size(), 1);
  EXPECT_EQ(row.extensions(0), "2,7");
  response.Clear();
  ASSERT_TRUE(Extend("s", "0..2", &response).ok());
  EXPECT_EQ(response.new_seeds(), "") << "it has them";
  EXPECT_EQ(GetSweep("s").cells(), 8u);
  for (int i = 0; i < 3; ++i) RunOne(worker, v1::ATTEMPT_OUTCOME_SUCCEEDED);
  const v1::Sweep end =
      AwaitSweep("s", [](const auto& s) { return s.state() == v1::SWEEP_STATE_FINISHED; });
  EXPECT_EQ(end.jobs().succeeded(), 8u);
  EXPECT_EQ(Extend("s", "5..x", &response).error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(Extend("s", "0..999999999", &response).error_message(), HasSubstr("1000000"));
}

TEST_F(ControlTest, AnExtensionOfASweepThatExpandsOutlivesARestart) {
  Submit(Document("s", "0..999"), "a");
  v1::ExtendResponse response;
  ASSERT_TRUE(Extend("s", "1000..2499", &response).ok());
  EXPECT_EQ(response.cells(), 3000u);
  ASSERT_TRUE(Extend("s", "5000", &response).ok());
  EXPECT_EQ(GetSweep("s").state(), v1::SWEEP_STATE_EXPANDING);
  Restart();
  const v1::Sweep sweep =
      AwaitSweep("s", [](const auto& s) { return s.state() == v1::SWEEP_STATE_ACTIVE; });
  EXPECT_EQ(sweep.cells(), 5002u);
  EXPECT_EQ(sweep.counts().total(), 5002u);
  EXPECT_EQ(sweep.counts().new_jobs(), 5002u);
  EXPECT_EQ(sweep.extensions_size(), 2);
}

TEST_F(ControlTest, ADrainingWorkerGetsNothingWhateverRestarts) {
  auto worker = std::make_unique<FakeWorker>(channel_, "w1", 1);
  worker->AwaitWelcome();
  const v1::DrainWorkerResponse drained = Drain("w1", v1::Drain::CHECKPOINT);
  EXPECT_TRUE(drained.changed());
  EXPECT_EQ(drained.drain(), "checkpoint");
  EXPECT_EQ(AwaitDrain(*worker), v1::Drain::CHECKPOINT);
  EXPECT_EQ(Worker("w1").state(), "drained");
  EXPECT_EQ(Worker("w1").drain(), "checkpoint");
  Submit(Document("s", kOneSeed), "a");
  AwaitSweep("s",
             [](const auto& s) { return s.waiting_reason() == "every connected worker drains"; });
  worker->Vanish();
  worker = std::make_unique<FakeWorker>(channel_, "w1", 1);
  EXPECT_EQ(AwaitDrain(*worker), v1::Drain::CHECKPOINT) << "told again";
  worker.reset();
  Restart();
  worker = std::make_unique<FakeWorker>(channel_, "w1", 1);
  EXPECT_EQ(AwaitDrain(*worker), v1::Drain::CHECKPOINT);
  // Another worker does the work.
  FakeWorker other(channel_, "w2", 1);
  RunOne(other, v1::ATTEMPT_OUTCOME_SUCCEEDED);
  Drain("w2", v1::Drain::FINISH);
  EXPECT_EQ(AwaitDrain(other), v1::Drain::FINISH);
  EXPECT_FALSE(Drain("w1", v1::Drain::CHECKPOINT).changed());
  EXPECT_EQ(Drain("w1", v1::Drain::RESUME).drain(), "");
  worker->Await([](const auto& m) { return m.drain().mode() == v1::Drain::RESUME; });
  EXPECT_EQ(Worker("w1").state(), "online");
  v1::DrainWorkerRequest request;
  v1::DrainWorkerResponse response;
  request.set_worker("nobody");
  request.set_mode(v1::Drain::KILL);
  EXPECT_EQ(fleet_->DrainWorker(Context().get(), request, &response).error_code(),
            grpc::StatusCode::NOT_FOUND);
  request.set_mode(v1::Drain::MODE_UNSPECIFIED);
  EXPECT_EQ(fleet_->DrainWorker(Context().get(), request, &response).error_code(),
            grpc::StatusCode::INVALID_ARGUMENT);
}

TEST_F(ControlTest, AWorkerThatSaysItIsUnfitIsDrainedUntilAPersonResumesIt) {
  auto worker = std::make_unique<FakeWorker>(channel_, "w1", 1);
  worker->AwaitWelcome();
  worker->Beat({}, {}, "GPU cuda:0 has Xid 79");
  EXPECT_EQ(AwaitDrain(*worker), v1::Drain::CHECKPOINT);
  EXPECT_EQ(Worker("w1").drain(), "checkpoint");
  Submit(Document("s", kOneSeed), "a");
  worker.reset();
  Restart();
  worker = std::make_unique<FakeWorker>(channel_, "w1", 1);
  EXPECT_EQ(AwaitDrain(*worker), v1::Drain::CHECKPOINT) << "it is kept";
  worker->Beat({}, {}, "GPU cuda:0 has Xid 79");
  EXPECT_EQ(AwaitDrain(*worker), v1::Drain::CHECKPOINT) << "of a new session, harmless";
  Drain("w1", v1::Drain::RESUME);
  EXPECT_EQ(AwaitDrain(*worker), v1::Drain::RESUME);
  worker->Beat({}, {}, "GPU cuda:0 has Xid 79");  // it had not heard of that when it beat
  worker->Beat({});
  RunOne(*worker, v1::ATTEMPT_OUTCOME_SUCCEEDED);
  worker->Beat({}, {}, "GPU cuda:0 has Xid 48");
  EXPECT_EQ(AwaitDrain(*worker), v1::Drain::CHECKPOINT) << "broken again";
}

TEST_F(ControlTest, APreemptedJobGoesElsewhereAndItsWorkerMayResumeAtOnce) {
  Submit(Document("s", kOneSeed), "a");
  FakeWorker first(channel_, "w1", 1);
  Script script(first.AwaitAssignment());
  first.Send({script.Started(0, 3), script.Epoch(0)});
  first.AwaitAck(script.assignment().attempt_id(), 2);
  EXPECT_EQ(Drain("w1", v1::Drain::KILL).busy_slots(), 1);
  EXPECT_EQ(AwaitDrain(first), v1::Drain::KILL);
  EXPECT_EQ(Worker("w1").state(), "draining");
  Drain("w1", v1::Drain::RESUME);
  // Its trainer ends only after that. The worker still takes jobs again.
  first.Send({script.Finished(v1::ATTEMPT_OUTCOME_PREEMPTED)});
  EXPECT_EQ(RunOne(first, v1::ATTEMPT_OUTCOME_SUCCEEDED), 0);
  const v1::ListJobsResponse jobs = Jobs("s");
  for (const v1::JobRow& job : jobs.jobs()) EXPECT_NE(job.state(), v1::JOB_STATE_FAILED);
}

TEST_F(ControlTest, TwoThousandRunningJobsAreCancelledAtOnce) {
  constexpr int kWorkers = 2;
  constexpr int kSlots = 1000;
  coordinator_.reset();
  options_.lease = absl::Minutes(5);
  Start();
  Submit(Document("s", "0..999"), "a");
  std::vector<std::unique_ptr<FakeWorker>> workers;
  for (int i = 0; i < kWorkers; ++i) {
    workers.push_back(std::make_unique<FakeWorker>(channel_, absl::StrCat("w", i), kSlots));
  }
  AwaitSweep("s", [](const auto& s) { return s.jobs().assigned() == kWorkers * kSlots; });
  for (const auto& worker : workers) {
    std::vector<v1::Event> events;
    for (int i = 0; i < kSlots; ++i) {
      events.push_back(Script(worker->AwaitAssignment()).Started(0, 3));
    }
    worker->Send(events);
  }
  AwaitSweep("s", [](const auto& s) { return s.jobs().running() == kWorkers * kSlots; });
  const absl::Time asked = absl::Now();
  v1::CancelResponse response;
  ASSERT_TRUE(Cancel("s", &response).ok());
  EXPECT_EQ(response.jobs_cancelled(), kWorkers * kSlots);
  EXPECT_FALSE(response.more());
  const auto is_stop = [](const auto& m) { return m.has_stop(); };
  for (const auto& worker : workers) {
    std::set<std::int64_t> stopped;
    for (int i = 0; i < kSlots; ++i) stopped.insert(worker->AwaitStop().attempt_id());
    EXPECT_EQ(stopped.size(), kSlots);
    EXPECT_EQ(worker->Count(is_stop), 0);
  }
  EXPECT_LT(absl::Now() - asked, kSlower * absl::Seconds(1)) << "half of what a trainer may take";
}

TEST_F(ControlTest, CancellingALargeSweepHoldsNobodyUp) {
  constexpr std::uint64_t kJobs = kSlower == 1 ? 10'000 : 3'000;
  Submit(Document("large", absl::StrCat("0..", kJobs / 2 - 1)), "a");
  AwaitSweep("large", [](const auto& s) { return s.state() == v1::SWEEP_STATE_ACTIVE; });
  std::uint64_t cancelled = 0;
  std::uint64_t withdrawn = 0;
  int calls = 0;
  Notification done;
  std::thread canceller([&] {
    // A call ends after some time and reports whether there is more. On a slow machine another call
    // follows.
    v1::CancelResponse response;
    do {
      response.Clear();
      ++calls;
      EXPECT_TRUE(Cancel("large", &response).ok());
      cancelled += response.jobs_cancelled();
      withdrawn += response.claims_withdrawn();
    } while (response.more() && !HasFailure());
    done.Notify();
  });
  absl::Duration longest;
  int asked = 0;
  while (!done.HasBeenNotified()) {
    const absl::Time before = absl::Now();
    Submit(Document("small", "[900000]"), absl::StrCat("t", ++asked));
    longest = std::max(longest, absl::Now() - before);
  }
  canceller.join();
  // Between two calls the coordinator goes on by itself, and no call counts what it cancels then.
  EXPECT_LE(cancelled, kJobs);
  EXPECT_EQ(withdrawn, cancelled);
  if (calls == 1) {
    EXPECT_EQ(cancelled, kJobs);
  }
  AwaitSweep("large", [](const auto& s) { return s.jobs().cancelled() == kJobs; });
  EXPECT_GE(asked, 2) << "others were answered meanwhile";
  EXPECT_LT(longest, kSlower * absl::Milliseconds(500));
}

}  // namespace
}  // namespace pelab
