// Analyses that are added to trained jobs.
#include "tests/contract/store/store_fixture.h"

namespace pelab::store {
namespace {

using state::JobState;
using state::Outcome;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

constexpr char kMeanParameters[] = R"({"data":"test","hygiene":"raw","method":"mean"})";
constexpr char kBothAnalyses[] =
    R"([{"name":"head_ablation","version":2,"parameters_json":"{\"data\":\"test\",)"
    R"(\"hygiene\":\"raw\",\"method\":\"mean\"}"},)"
    R"({"name":"head_ablation","version":2,"parameters_json":"{\"data\":\"test\",)"
    R"(\"hygiene\":\"raw\",\"method\":\"zero\"}"}])";
const Analysis kMean{"head_ablation", 2, kMeanParameters};
const Analysis kLayers{"layer_ablation", 1, "{}"};

class AnalysesTest : public StoreTest {
 protected:
  Analyzed Analyze(const std::vector<Analysis>& analyses, std::vector<std::int64_t> jobs = {1},
                   std::int64_t sweep_id = 0) {
    return Do<Analyzed>(store::Analyze{
        .jobs = std::move(jobs), .sweep_id = sweep_id, .analyses = analyses, .now = 6000});
  }
  // These results must stay unchanged, whatever happens later.
  std::string TrainingResults() {
    return Text(
               "SELECT job_id, epochs_done, train_correct, test_correct, best_test_accuracy, "
               "wall_seconds, device, trained FROM v_jobs") +
           Text("SELECT * FROM v_curves");
  }
};
INSTANTIATE_TEST_SUITE_P(Backends, AnalysesTest, testing::Bool(),
                         [](const auto& info) { return info.param ? "File" : "Memory"; });

TEST_P(AnalysesTest, ATrainedJobGetsAnAnalysisAndKeepsItsResults) {
  const std::int64_t sweep = Submit("a", {Cell(0, "k0")});
  TrainWhole();
  const std::string before = TrainingResults();
  const Analyzed asked = Analyze({kMean, kLayers}, {1}, sweep);
  EXPECT_EQ(asked.queued, 1);
  ASSERT_THAT(asked.jobs.ready, SizeIs(1));
  EXPECT_EQ(asked.jobs.ready[0].sweep_id, sweep);
  EXPECT_THAT(asked.jobs.ready[0].requirement.analyses,
              ElementsAre(std::pair("head_ablation", 2), std::pair("layer_ablation", 1)));
  EXPECT_EQ(JobState(1), "queued");
  EXPECT_EQ(SweepState(sweep), "active");
  EXPECT_EQ(TrainingResults(), before);

  Attempt attempt = Assign(1, 900);
  ASSERT_TRUE(assignment_.weights.has_value());
  EXPECT_EQ(assignment_.weights->sha256, kWeightsHash);
  EXPECT_EQ(assignment_.weights->bytes, 12u);
  EXPECT_EQ(assignment_.max_start_epoch, 3);
  EXPECT_THAT(assignment_.analyses, ElementsAre(kMean, kLayers));
  Event(attempt.Next(StartedEvent(3, 3)));
  EXPECT_EQ(JobState(1), "running");
  Event(attempt.Next(Matrix(kMeanParameters)));
  Event(attempt.Next(ResultOf("layer_ablation", R"({"total":97,"intact_correct":42})", 2.5)));
  const EventStored end = Event(attempt.Next(SucceededEvent(1.0)));
  EXPECT_EQ(end.change->state, JobState::kSucceeded);
  EXPECT_EQ(JobState(1), "succeeded");
  EXPECT_EQ(SweepState(sweep), "finished");
  EXPECT_EQ(TrainingResults(), before);
  EXPECT_EQ(Text("SELECT total, intact_correct, seconds FROM v_analyses "
                 "WHERE name = 'layer_ablation'"),
            "97 42 2.5");
  EXPECT_EQ(Text("SELECT count(*) FROM analysis_requests"), "0");
  EXPECT_EQ(Text("SELECT job_id, name, sha256, bytes FROM v_artifacts"),
            absl::StrCat("1 weights.safetensors ", kWeightsHash, " 12"));
}

TEST_P(AnalysesTest, AskingAgainChangesNothing) {
  const std::int64_t sweep = Submit("a", {Cell(0, "k0")});
  TrainWhole();
  EXPECT_EQ(Analyze({{"head_ablation", 2, kParameters}}).stored, 1);
  EXPECT_EQ(SweepState(sweep), "finished");
  EXPECT_EQ(Analyze({kMean}).queued, 1);
  EXPECT_EQ(Analyze({kMean}).queued, 1);
  EXPECT_EQ(Text("SELECT count(*) FROM analysis_requests"), "1");
  Attempt attempt = Assign(1, 900);
  EXPECT_EQ(Analyze({kMean}).queued, 1);
  EXPECT_EQ(JobState(1), "assigned");
  Event(attempt.Next(StartedEvent(3, 3)));
  Event(attempt.Next(Matrix(kMeanParameters)));
  EXPECT_EQ(Event(attempt.Next(SucceededEvent())).change->state, JobState::kSucceeded);
  EXPECT_EQ(SweepState(sweep), "finished");
}

// Two finished sweeps share a trained job. The job is queued for an analysis of one of them. When
// the other sweep is reopened, the job must count as open for that one too, whatever happens to the
// first.
TEST_P(AnalysesTest, ASweepThatLivesAgainWaitsForWhatWasQueuedMeanwhile) {
  const std::int64_t first = Submit("a", {Cell(0, "k0"), Cell(1, "k1")});
  TrainWhole(1);
  Attempt failed = Assign(2, 3);
  Event(failed.Next(FailedEvent(state::ErrorKind::kBadSpec, "bad")));
  const std::int64_t second = Submit("b", {Cell(0, "k0")});
  EXPECT_EQ(SweepState(first), "finished");
  const Analyzed asked = Analyze({kMean}, {1}, second);
  ASSERT_THAT(asked.jobs.ready, SizeIs(1));
  EXPECT_EQ(asked.jobs.ready[0].sweep_id, second);
  EXPECT_THAT(asked.jobs.ready[0].others, SizeIs(0)) << "the first has ended";

  const auto retried = Do<Retried>(RetryJob{.job_id = 2, .failed_only = true, .now = 7000});
  EXPECT_EQ(SweepState(first), "active");
  std::vector<std::int64_t> of_job;  // the sweeps in whose queue job 1 is from now on
  for (const ReadyJob& job : retried.jobs.ready) {
    if (job.job_id != 1) continue;
    of_job.push_back(job.sweep_id);
    for (const Claim& other : job.others) of_job.push_back(other.sweep_id);
  }
  EXPECT_THAT(of_job, ElementsAre(first, second));
  Do<Cancelled>(CancelSweep{second, 8000});
  EXPECT_EQ(JobState(1), "queued") << "the first waits for it";
}

TEST_P(AnalysesTest, AnExtendedSweepWaitsForWhatWasQueuedMeanwhile) {
  const std::int64_t first = Submit("a", {Cell(0, "k0")});
  TrainWhole(1);
  const std::int64_t second = Submit("b", {Cell(0, "k0")});
  Analyze({kMean}, {1}, second);
  EXPECT_EQ(SweepState(first), "finished");
  const auto extended =
      Do<SweepExtended>(ExtendSweep{.sweep_id = first, .known = 0, .seeds = "5", .cells = 2});
  ASSERT_THAT(extended.jobs.ready, SizeIs(1));
  EXPECT_EQ(extended.jobs.ready[0].sweep_id, first);
  ASSERT_THAT(extended.jobs.ready[0].others, SizeIs(1));
  EXPECT_EQ(extended.jobs.ready[0].others[0].sweep_id, second);
  EXPECT_THAT(extended.jobs.sweep_settings, SizeIs(1));
}

TEST_P(AnalysesTest, WhatCannotBeAnalyzedIsSaid) {
  Submit("a", {Cell(0, "k0"), Cell(1, "k1"), Cell(2, "k2"), Cell(3, "k3")});
  TrainWhole(1, /*keep_weights=*/false);
  TrainWhole(2);
  Attempt failed = Assign(3, 3);
  Event(failed.Next(FailedEvent(state::ErrorKind::kBadSpec, "bad")));
  gone_artifact_ = kWeightsHash;
  const Analyzed asked = Analyze({kMean}, {1, 2, 3, 4, 99});
  EXPECT_EQ(asked.not_possible, 2);
  EXPECT_EQ(asked.not_trained, 1);
  EXPECT_EQ(asked.after_training, 1);
  EXPECT_EQ(asked.queued, 0);
  EXPECT_THAT(asked.reasons, ElementsAre("job 1 (rope distance seed 0): its weights are not kept",
                                         "job 2 (rope distance seed 1): its weights are not kept",
                                         "job 3 (rope distance seed 2) failed: it has no weights"));
  EXPECT_EQ(JobState(1), "succeeded");
}

TEST_P(AnalysesTest, WhatIsAskedBeforeTrainingEndsFollowsIt) {
  const std::int64_t sweep = Submit("a", {Cell(0, "k0")});
  Attempt attempt = Assign(1);
  Train(attempt, 0, 2);
  EXPECT_EQ(Analyze({kMean}).after_training, 1);
  Event(attempt.Next(MakeEpoch(2)));
  Event(attempt.Next(Matrix()));
  Event(attempt.Next(ArtifactEvent(kWeightsName, kWeightsHash, 12)));
  const EventStored end = Event(attempt.Next(SucceededEvent()));
  EXPECT_EQ(end.change->outcome, Outcome::kSucceeded);
  ASSERT_TRUE(end.change->ready.has_value());
  EXPECT_EQ(end.change->state, JobState::kQueued);
  EXPECT_EQ(SweepState(sweep), "active");
  Attempt second = Assign(1, 900);
  EXPECT_THAT(assignment_.analyses, ElementsAre(kMean));
  EXPECT_TRUE(assignment_.weights.has_value());
  Event(second.Next(StartedEvent(3, 3)));
  Event(second.Next(Matrix(kMeanParameters)));
  EXPECT_EQ(Event(second.Next(SucceededEvent())).change->state, JobState::kSucceeded);
  EXPECT_EQ(SweepState(sweep), "finished");
}

TEST_P(AnalysesTest, AttemptsThatFailLeaveTheJobSucceeded) {
  const std::int64_t sweep = Submit("a", {Cell(0, "k0")});
  TrainWhole();
  const std::string before = TrainingResults();
  Analyze({kMean});
  for (int i = 1; i <= 3; ++i) {
    Attempt attempt = Assign(1, 900 + i);
    Event(attempt.Next(StartedEvent(3, 3)));
    const EventStored end =
        Event(attempt.Next(FailedEvent(state::ErrorKind::kTrainerDied, "died")));
    EXPECT_EQ(end.change->ready.has_value(), i < 3);
  }
  EXPECT_EQ(JobState(1), "succeeded");
  EXPECT_EQ(SweepState(sweep), "finished");
  EXPECT_EQ(TrainingResults(), before);
  EXPECT_EQ(Text("SELECT error IS NULL FROM v_jobs"), "1");
  EXPECT_EQ(Text("SELECT outcome, error FROM v_attempts WHERE number = 4"), "failed died");
  EXPECT_EQ(Text("SELECT count(*) FROM analysis_requests"), "0");
  // It may be requested again, with fresh budgets.
  Analyze({kMean});
  for (int i = 1; i <= 5; ++i) {
    Attempt attempt = Assign(1, 950 + i);
    EXPECT_TRUE(Do<EventStored>(EndAttempt{attempt.id, state::Event::kLose, "lost", 7000}).change);
  }
  EXPECT_EQ(JobState(1), "succeeded");
  Analyze({kMean});
  Attempt attempt = Assign(1, 999);
  Event(attempt.Next(FailedEvent(state::ErrorKind::kOutOfMemory, "too big")));
  EXPECT_EQ(JobState(1), "succeeded");
  EXPECT_EQ(TrainingResults(), before);
}

TEST_P(AnalysesTest, AnAnalysisThatTrainsIsRefused) {
  Submit("a", {Cell(0, "k0")});
  TrainWhole();
  const std::string before = TrainingResults();
  Analyze({kMean});
  Attempt attempt = Assign(1, 900);
  const EventStored refused = Event(attempt.Next(StartedEvent(0, 3)));
  EXPECT_EQ(refused.status, EventStored::kSuperseded);
  EXPECT_THAT(Text("SELECT error FROM v_attempts WHERE number = 2"),
              HasSubstr("asked for analyses only"));
  EXPECT_EQ(TrainingResults(), before);
}

TEST_P(AnalysesTest, CancellingEndsTheAnalysesOnly) {
  const std::int64_t sweep = Submit("a", {Cell(0, "k0"), Cell(1, "k1")});
  TrainWhole(1);
  TrainWhole(2);
  const std::string before = TrainingResults();
  Analyze({kMean}, {1, 2}, sweep);
  Attempt attempt = Assign(1, 900);
  Event(attempt.Next(StartedEvent(3, 3)));
  const auto cancelled = Do<Cancelled>(CancelSweep{sweep, 8000});
  EXPECT_THAT(cancelled.jobs, ElementsAre(1, 2));
  EXPECT_THAT(cancelled.attempts, ElementsAre(attempt.id));
  EXPECT_EQ(cancelled.claims_withdrawn, 2);
  EXPECT_EQ(JobState(1) + " " + JobState(2), "succeeded succeeded");
  EXPECT_EQ(SweepState(sweep), "finished");
  EXPECT_EQ(Text("SELECT count(*) FROM sweep_jobs WHERE claimed = 1"), "2");
  EXPECT_EQ(Text("SELECT count(*) FROM analysis_requests"), "0");
  const EventStored end = Event(attempt.Next(EndEvent(v1::ATTEMPT_OUTCOME_CANCELLED)));
  EXPECT_EQ(end.change->outcome, Outcome::kCancelled);
  EXPECT_EQ(end.change->state, JobState::kSucceeded);
  EXPECT_EQ(TrainingResults(), before);
  // Requests for single jobs.
  Analyze({kMean}, {1, 2});
  EXPECT_EQ(SweepState(sweep), "active");
  EXPECT_THAT(Do<Cancelled>(CancelJob{1, 8000}).jobs, ElementsAre(1));
  EXPECT_EQ(SweepState(sweep), "active");
  EXPECT_THAT(Do<Cancelled>(CancelJob{2, 8000}).jobs, ElementsAre(2));
  EXPECT_EQ(SweepState(sweep), "finished");
}

TEST_P(AnalysesTest, AskedAgainWhileItStopsSupersedesTheOldAttempt) {
  Submit("a", {Cell(0, "k0")});
  TrainWhole();
  Analyze({kMean});
  Attempt stopping = Assign(1, 900);
  Do<Cancelled>(CancelJob{1, 8000});
  const Analyzed again = Analyze({kMean});
  EXPECT_EQ(again.queued, 1);
  EXPECT_THAT(again.jobs.superseded, ElementsAre(stopping.id));
  EXPECT_EQ(Event(stopping.Next(StartedEvent(3, 3))).status, EventStored::kSuperseded);
  Assign(1, 901);
  EXPECT_EQ(Text("SELECT outcome FROM attempts WHERE number = 2"), "superseded");
}

TEST_P(AnalysesTest, SubmittingAgainWithMoreAnalysesQueuesThem) {
  Submit("a", {Cell(0, "k0"), Cell(1, "k1"), Cell(2, "k2")});
  TrainWhole(1);
  TrainWhole(2, /*keep_weights=*/false);
  const std::int64_t more =
      Submit("b", {Cell(0, "k0"), Cell(1, "k1"), Cell(2, "k2")}, false, 3, kBothAnalyses);
  EXPECT_EQ(Text(absl::StrCat("SELECT new_jobs, stored_jobs, in_flight_jobs, analysis_jobs, "
                              "analysis_impossible_jobs FROM sweeps WHERE sweep_id = ",
                              more)),
            "0 2 1 1 1");
  ASSERT_THAT(slice_.ready, SizeIs(2));  // job 3 is queued already and now belongs to both sweeps
  EXPECT_EQ(slice_.ready[0].job_id, 1);
  EXPECT_EQ(slice_.ready[0].sweep_id, 1);  // the oldest open sweep
  EXPECT_THAT(slice_.ready[0].others, ElementsAre(Claim{more, 0}));
  EXPECT_THAT(slice_.sweep_settings, ElementsAre(SweepSettings{more, 3, false}));
  EXPECT_THAT(slice_.ready[0].requirement.analyses, ElementsAre(std::pair("head_ablation", 2)));
  EXPECT_EQ(JobState(1), "queued");
  EXPECT_EQ(JobState(2), "succeeded");
  Attempt attempt = Assign(1, 900);
  EXPECT_THAT(assignment_.analyses, ElementsAre(kMean));
  Event(attempt.Next(StartedEvent(3, 3)));
  Event(attempt.Next(Matrix(kMeanParameters)));
  Event(attempt.Next(SucceededEvent()));
  EXPECT_EQ(JobState(1), "succeeded");
  EXPECT_EQ(SweepState(more), "active");  // waits for job 3
  Attempt third = Assign(3, 901);
  EXPECT_THAT(assignment_.analyses, SizeIs(2));
  EXPECT_FALSE(assignment_.weights.has_value());
  Train(third, 0, 3);
  Event(third.Next(Matrix()));
  Event(third.Next(Matrix(kMeanParameters)));
  Event(third.Next(SucceededEvent()));
  EXPECT_EQ(SweepState(more), "finished");
  EXPECT_EQ(SweepState(1), "finished");
  // Only the impossible analysis is missing.
  const std::int64_t again = Submit("c", {Cell(0, "k0")}, false, 0, kBothAnalyses);
  EXPECT_EQ(SweepState(again), "finished");
  EXPECT_THAT(slice_.ready, IsEmpty());
}

TEST_P(AnalysesTest, ASweepThatJoinsARunningAttemptGetsItsAnalysesAfterIt) {
  Submit("a", {Cell(0, "k0")});
  Attempt attempt = Assign(1);
  Train(attempt, 0, 3);
  const std::int64_t joined = Submit("b", {Cell(0, "k0")}, false, 0, kBothAnalyses);
  Event(attempt.Next(Matrix()));
  Event(attempt.Next(ArtifactEvent(kWeightsName, kWeightsHash, 12)));
  const EventStored end = Event(attempt.Next(SucceededEvent()));
  EXPECT_TRUE(end.change->ready.has_value());
  EXPECT_EQ(SweepState(joined), "active");
  Attempt second = Assign(1, 900);
  EXPECT_THAT(assignment_.analyses, ElementsAre(kMean));
  Event(second.Next(StartedEvent(3, 3)));
  Event(second.Next(Matrix(kMeanParameters)));
  Event(second.Next(SucceededEvent()));
  EXPECT_EQ(SweepState(joined), "finished");
}

TEST_P(AnalysesTest, AFreshGenerationHidesNothingUntilItIsTrained) {
  Submit("a", {Cell(0, "k0")});
  TrainWhole();
  Submit("b", {Cell(0, "k0")}, /*fresh=*/true);
  Analyze({kMean});
  EXPECT_EQ(Text("SELECT job_id, state FROM v_jobs"), "1 queued")
      << "analyses that are being added do not hide a result";
}

TEST_P(AnalysesTest, AnAnalysisNeitherSetsNorNeedsTheSettingsOfTraining) {
  Submit("a", {Cell(0, "k0")});
  TrainWhole();  // by a worker that did not report it
  Analyze({kMean});
  Attempt attempt = Assign(1, 900);
  EXPECT_EQ(Event(attempt.Next(StartedEvent(3, 3, "{}", Execution{4, 0, 1}))).status,
            EventStored::kStored);
  EXPECT_EQ(Text("SELECT execution_json IS NULL FROM jobs"), "1");
}

TEST_P(AnalysesTest, AStoredAnalysisIsProgressToo) {
  Submit("a", {Cell(0, "k0")});
  TrainWhole();
  Analyze({kMean, kLayers});
  Attempt attempt = Assign(1, 900);
  Event(attempt.Next(StartedEvent(3, 3)));
  Event(attempt.Next(Matrix(kMeanParameters)));
  Event(attempt.Next(EndEvent(v1::ATTEMPT_OUTCOME_PREEMPTED)));
  EXPECT_EQ(Text("SELECT state, lost_attempts FROM jobs"), "queued 0");
  Assign(1, 901);
  EXPECT_THAT(assignment_.analyses, ElementsAre(kLayers));
}

// After a restart -----------------------------------------------------------------------------

class AnalysesFileTest : public AnalysesTest {
 protected:
  struct Recovered {
    std::vector<ReadyJob> ready;
    std::vector<OpenAttempt> open;
  };
  Recovered Restart() {
    Open();
    Recovered found;
    EXPECT_TRUE(store_
                    ->Recover([](auto) {}, [&](auto job) { found.ready.push_back(job); },
                              [&](auto attempt) { found.open.push_back(attempt); }, [](auto) {})
                    .ok());
    return found;
  }
};
INSTANTIATE_TEST_SUITE_P(File, AnalysesFileTest, testing::Values(true));

TEST_P(AnalysesFileTest, QueuedAndOpenAnalysesSurviveARestart) {
  const std::int64_t sweep = Submit("a", {Cell(0, "k0"), Cell(1, "k1"), Cell(2, "k2")});
  TrainWhole(1);
  TrainWhole(2);
  Do<Cancelled>(CancelJob{3, 4000});
  const std::string before = TrainingResults();
  Analyze({kMean}, {1, 2}, sweep);
  Attempt attempt = Assign(2, 900);
  Event(attempt.Next(StartedEvent(3, 3)));
  const Recovered found = Restart();
  ASSERT_THAT(found.ready, SizeIs(1));
  EXPECT_EQ(found.ready[0].job_id, 1);
  EXPECT_EQ(found.ready[0].sweep_id, sweep);
  EXPECT_THAT(found.ready[0].requirement.analyses, ElementsAre(std::pair("head_ablation", 2)));
  ASSERT_THAT(found.open, SizeIs(1));
  EXPECT_EQ(found.open[0].assignment.weights->sha256, kWeightsHash);
  EXPECT_FALSE(found.open[0].cancelled);
  EXPECT_EQ(SweepState(sweep), "active");
  Event(attempt.Next(Matrix(kMeanParameters)));
  Event(attempt.Next(SucceededEvent()));
  EXPECT_EQ(JobState(2), "succeeded");
  Do<Cancelled>(CancelJob{1, 8000});
  EXPECT_EQ(SweepState(sweep), "finished");  // the count of open jobs was rebuilt
  EXPECT_EQ(TrainingResults(), before);
}

TEST_P(AnalysesFileTest, AnAnalysisThatIsBeingStoppedIsStillToBeStoppedAfterARestart) {
  Submit("a", {Cell(0, "k0")});
  TrainWhole();
  Analyze({kMean});
  Attempt attempt = Assign(1, 900);
  Event(attempt.Next(StartedEvent(3, 3)));
  Do<Cancelled>(CancelJob{1, 8000});
  const Recovered found = Restart();
  ASSERT_THAT(found.open, SizeIs(1));
  EXPECT_TRUE(found.open[0].cancelled);
  EXPECT_TRUE(Do<EventStored>(EndAttempt{attempt.id, state::Event::kLose, "gone", 9000}).change);
  EXPECT_EQ(JobState(1), "succeeded");
}

TEST_P(AnalysesFileTest, WhatWaitingJobsNeedIsKnownAfterARestart) {
  Submit("a", {Cell(0, "k0"), Cell(1, "k1")});
  Submit("b", {Cell(0, "k1")}, false, 0,
         R"([{"name":"layer_ablation","version":1,"parameters_json":"{}"}])");
  const Recovered found = Restart();
  ASSERT_THAT(found.ready, SizeIs(2));
  EXPECT_THAT(found.ready[0].requirement.analyses, ElementsAre(std::pair("head_ablation", 2)));
  EXPECT_THAT(found.ready[1].requirement.analyses,
              ElementsAre(std::pair("head_ablation", 2), std::pair("layer_ablation", 1)));
}

}  // namespace
}  // namespace pelab::store
