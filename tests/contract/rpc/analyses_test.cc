// Analyses that are added to trained jobs, over RPC: requested, assigned with kept weights, lost,
// cancelled, kept over restarts, and read back.
#include <gmock/gmock.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "core/experiment/analysis.h"
#include "core/rpc/status.h"
#include "tests/contract/rpc/coordinator_fixture.h"

namespace pelab {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

v1::Analysis ToProto(const experiment::Analysis& analysis) {
  v1::Analysis out;
  out.set_name(analysis.name);
  out.set_version(analysis.version);
  out.set_parameters_json(experiment::CanonicalParameters(analysis));
  return out;
}
v1::Analysis MeanAblation() {
  return ToProto(experiment::MakeAnalysis("clean", "head_ablation",
                                          {{"head_ablation.method", std::string("mean")}}));
}
v1::Analysis LayerAblation() {
  return ToProto(experiment::MakeAnalysis("clean", "layer_ablation"));
}

// Two trained jobs with their weights kept.
class AnalyzeTest : public CoordinatorTest {
 protected:
  void SetUp() override {
    CoordinatorTest::SetUp();
    Submit(Document("s", "[0]"), "first");
    FakeWorker worker(channel_, "trainer", 2);
    for (int i = 0; i < 2; ++i) {
      Script script(worker.AwaitAssignment());
      const std::string weights = absl::StrCat("weights of job ", script.assignment().job_id());
      worker.Send({script.Started(0, 3), script.Epoch(0), script.Epoch(1), script.Epoch(2),
                   script.Ablation(),
                   script.Artifact(Put(script.assignment(), weights), weights.size()),
                   script.Finished(v1::ATTEMPT_OUTCOME_SUCCEEDED)});
      worker.AwaitAck(script.assignment().attempt_id(), script.sequence());
    }
    EXPECT_TRUE(worker.Leave().ok());
    before_ = Training();
  }
  // The results that no analysis may change.
  std::string Training() {
    std::string all;
    v1::ListJobsResponse jobs = Jobs("s");
    for (v1::JobRow& job : *jobs.mutable_jobs()) {
      job.clear_state();
      job.clear_attempts();
      job.clear_error();
      all += job.SerializeAsString();
    }
    return all + Curves("s").SerializeAsString();
  }
  static v1::AnalyzeRequest OfSweep(const std::vector<v1::Analysis>& analyses) {
    v1::AnalyzeRequest request;
    request.mutable_sweep()->set_sweep("s");
    for (const v1::Analysis& analysis : analyses) *request.add_analyses() = analysis;
    return request;
  }
  v1::AnalyzeResponse Analyze(const v1::AnalyzeRequest& request) {
    v1::AnalyzeResponse response;
    const grpc::Status status = sweeps_->Analyze(Context().get(), request, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return response;
  }
  static std::vector<v1::Event> WholeAnalysis(Script& script) {
    std::vector<v1::Event> events = {script.Started(3, 3)};
    for (int i = 0; i < script.assignment().analyses_size(); ++i) {
      const bool matrix = script.assignment().analyses(i).name() == "head_ablation";
      events.push_back(matrix ? script.Ablation(i)
                              : script.Analysis(i, R"({"total":97,"intact_correct":42})"));
    }
    events.push_back(script.Finished(v1::ATTEMPT_OUTCOME_SUCCEEDED));
    return events;
  }
  v1::Sweep AwaitFinished() {
    return AwaitSweep("s",
                      [](const v1::Sweep& s) { return s.state() == v1::SWEEP_STATE_FINISHED; });
  }
  template <typename Response, typename Request, typename Method>
  Response List(Request request, Method method) {
    request.mutable_filter()->set_sweep("s");
    Response response;
    const grpc::Status status = (results_.get()->*method)(Context().get(), request, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return response;
  }

  std::string before_;
};

TEST_F(AnalyzeTest, ASweepGetsAnalysesWithoutTrainingAgain) {
  const v1::AnalyzeResponse asked = Analyze(OfSweep({MeanAblation(), LayerAblation()}));
  EXPECT_EQ(asked.queued(), 2u);
  const v1::Sweep waiting = GetSweep("s");
  EXPECT_EQ(waiting.state(), v1::SWEEP_STATE_ACTIVE);
  EXPECT_EQ(waiting.jobs().queued(), 2u);
  EXPECT_EQ(Training(), before_);
  EXPECT_TRUE(Jobs("s").jobs(0).trained());

  FakeWorker worker(channel_, "analyst", 1);
  for (int i = 0; i < 2; ++i) {
    Script script(worker.AwaitAssignment());
    const v1::Assignment& assignment = script.assignment();
    ASSERT_TRUE(assignment.has_weights());
    EXPECT_EQ(FileOf(assignment.weights().sha256()),
              absl::StrCat("weights of job ", assignment.job_id()));
    EXPECT_EQ(assignment.weights().bytes(), 16u);
    ASSERT_EQ(assignment.analyses_size(), 2);
    EXPECT_EQ(assignment.max_start_epoch(), 3);
    worker.Send(WholeAnalysis(script));
    worker.AwaitAck(assignment.attempt_id(), script.sequence());
  }
  EXPECT_EQ(AwaitFinished().jobs().succeeded(), 2u);
  EXPECT_EQ(Training(), before_);
  const auto analyses =
      List<v1::ListAnalysesResponse>(v1::ListAnalysesRequest(), &v1::Results::Stub::ListAnalyses);
  ASSERT_EQ(analyses.rows_size(), 6);
  EXPECT_EQ(analyses.rows(2).name(), "layer_ablation");
  EXPECT_EQ(analyses.rows(2).total(), 97);
  const auto deposits =
      List<v1::ListDepositsResponse>(v1::ListDepositsRequest(), &v1::Results::Stub::ListDeposits);
  ASSERT_EQ(deposits.rows_size(), 2 * 2 * 3);  // jobs x matrices x (two layers and both together)
  EXPECT_EQ(deposits.rows(0).method(), "mean");
  EXPECT_DOUBLE_EQ(deposits.rows(0).max_drop(), 32 / 97.0);
  const auto artifacts = List<v1::ListArtifactsResponse>(v1::ListArtifactsRequest(),
                                                         &v1::Results::Stub::ListArtifacts);
  ASSERT_EQ(artifacts.rows_size(), 2);
  EXPECT_EQ(artifacts.rows(0).name(), "weights.safetensors");

  const v1::AnalyzeResponse again = Analyze(OfSweep({MeanAblation(), LayerAblation()}));
  EXPECT_EQ(again.stored(), 2u);
  EXPECT_EQ(again.queued(), 0u);
  EXPECT_EQ(GetSweep("s").state(), v1::SWEEP_STATE_FINISHED);
}

TEST_F(AnalyzeTest, BadRequestsSayWhatIsWrong) {
  const auto complaint = [&](const v1::AnalyzeRequest& request) {
    v1::AnalyzeResponse response;
    const grpc::Status status = sweeps_->Analyze(Context().get(), request, &response);
    return absl::StrCat(status.error_code(), " ", status.error_message());
  };
  const auto with = [](v1::Analysis analysis, const std::function<void(v1::Analysis&)>& spoil) {
    spoil(analysis);
    return OfSweep({analysis});
  };
  EXPECT_THAT(complaint(OfSweep({})), HasSubstr("3 0 analyses are asked for; allowed: 1 to 64"));
  EXPECT_THAT(complaint(with(MeanAblation(), [](auto& a) { a.set_name("haed_ablation"); })),
              AllOf(HasSubstr("haed_ablation"), HasSubstr("did you mean head_ablation?")));
  EXPECT_THAT(complaint(with(MeanAblation(), [](auto& a) { a.set_version(1); })),
              HasSubstr("version"));
  EXPECT_THAT(complaint(with(MeanAblation(), [](auto& a) { a.set_parameters_json("[]"); })),
              HasSubstr("not a JSON object"));
  EXPECT_THAT(complaint(with(MeanAblation(), [](auto& a) { a.set_parameters_json("{}"); })),
              HasSubstr("missing"));
  EXPECT_THAT(complaint(with(LayerAblation(),
                             [](auto& a) {
                               a.set_parameters_json(
                                   R"({"data":"test","max_examples":-1,"method":"zero"})");
                             })),
              AllOf(HasSubstr("max_examples"), HasSubstr("-1")));
  v1::AnalyzeRequest nothing;
  *nothing.add_analyses() = MeanAblation();
  EXPECT_THAT(complaint(nothing), HasSubstr("a sweep or jobs must be named"));
  nothing.mutable_jobs();
  EXPECT_THAT(complaint(nothing), HasSubstr("0 jobs are named; allowed: 1 to 10000"));
  nothing.mutable_jobs()->add_jobs("4711");
  EXPECT_THAT(complaint(nothing), HasSubstr("5 no job 4711"));
  v1::AnalyzeRequest unknown = OfSweep({MeanAblation()});
  unknown.mutable_sweep()->set_sweep("nobody");
  EXPECT_THAT(complaint(unknown), HasSubstr("no sweep \"nobody\""));
  EXPECT_EQ(GetSweep("s").state(), v1::SWEEP_STATE_FINISHED);
}

TEST_F(AnalyzeTest, WeightsThatAreGoneAreSaid) {
  const auto artifacts = List<v1::ListArtifactsResponse>(v1::ListArtifactsRequest(),
                                                         &v1::Results::Stub::ListArtifacts);
  const std::string sha256 = artifacts.rows(0).sha256();
  ASSERT_TRUE(std::filesystem::remove(
      absl::StrCat(options_.database, ".artifacts/", sha256.substr(0, 2), "/", sha256)));
  const v1::AnalyzeResponse asked = Analyze(OfSweep({MeanAblation()}));
  EXPECT_EQ(asked.queued(), 1u);
  EXPECT_EQ(asked.not_possible(), 1u);
  EXPECT_THAT(asked.reasons(),
              ElementsAre(AllOf(HasSubstr("job 1 (nope"), HasSubstr("its weights are not kept"))));
  const v1::SubmitResponse more =
      Submit(absl::StrCat(Document("more", "[0]"), "  # with\n"), "second");
  EXPECT_EQ(more.counts().analysis_jobs(), 0u) << "the same analyses are stored";
}

TEST_F(AnalyzeTest, SubmittingWithMoreAnalysesQueuesThem) {
  std::string document = Document("more", "[0]");
  const std::string wanted = "analyses: [head_ablation]";
  document.replace(document.find(wanted), wanted.size(),
                   "analyses: [head_ablation, {name: head_ablation, method: mean}]");
  v1::PreviewRequest request;
  request.set_document(document);
  v1::PreviewResponse preview;
  ASSERT_TRUE(sweeps_->Preview(Context().get(), request, &preview).ok());
  const v1::SubmitResponse more = Submit(document, "second");
  EXPECT_EQ(more.counts().stored(), 2u);
  EXPECT_EQ(more.counts().analysis_jobs(), 2u);
  EXPECT_EQ(preview.counts().SerializeAsString(), more.counts().SerializeAsString());
  EXPECT_EQ(GetSweep("more").counts().analysis_jobs(), 2u);
  FakeWorker worker(channel_, "analyst", 2);
  for (int i = 0; i < 2; ++i) {
    Script script(worker.AwaitAssignment());
    ASSERT_TRUE(script.assignment().has_weights());
    ASSERT_EQ(script.assignment().analyses_size(), 1);
    EXPECT_EQ(script.assignment().analyses(0).parameters_json(), MeanAblation().parameters_json());
    worker.Send(WholeAnalysis(script));
  }
  AwaitSweep("more", [](const auto& s) { return s.state() == v1::SWEEP_STATE_FINISHED; });
  EXPECT_EQ(Training(), before_);
}

TEST_F(AnalyzeTest, ARestartOfTheCoordinatorLosesNothing) {
  Analyze(OfSweep({MeanAblation()}));
  v1::Assignment running;
  {
    FakeWorker worker(channel_, "analyst", 1);
    Script script(worker.AwaitAssignment());
    running = script.assignment();
    worker.Send({script.Started(3, 3)});
    worker.AwaitAck(running.attempt_id(), 1);
    Restart();  // one job runs, the other is queued
  }
  EXPECT_EQ(Training(), before_);
  FakeWorker worker(channel_, "analyst", 1, {Holding(running)});
  EXPECT_TRUE(worker.AwaitWelcome().held(0).accepted());
  Script script(running);
  script.Started(3, 3);  // sent before
  worker.Send({script.Ablation(), script.Finished(v1::ATTEMPT_OUTCOME_SUCCEEDED)});
  worker.AwaitAck(running.attempt_id(), script.sequence());
  Script other(worker.AwaitAssignment());
  EXPECT_TRUE(other.assignment().has_weights());
  worker.Send(WholeAnalysis(other));
  AwaitFinished();
  EXPECT_EQ(Training(), before_);
}

TEST_F(AnalyzeTest, WorkersThatDieCostTheAnalysisOnly) {
  coordinator_.reset();
  options_.lease = kShortLease;
  options_.heartbeat = absl::Milliseconds(50);
  Start();
  Analyze(OfSweep({MeanAblation()}));
  for (int i = 0; i < 5; ++i) {
    FakeWorker worker(channel_, absl::StrCat("w", i), 2);
    std::vector<v1::HeldAttempt> held;
    for (int k = 0; k < 2; ++k) {
      const v1::Assignment assignment = worker.AwaitAssignmentWith(held);
      EXPECT_TRUE(assignment.has_weights());
      held.push_back(Holding(assignment));
    }
    worker.Vanish();  // as with kill -9: no goodbye
  }
  EXPECT_EQ(AwaitFinished().jobs().succeeded(), 2u) << "the budget for lost workers is spent";
  EXPECT_EQ(Training(), before_);
  v1::ListAttemptsRequest request;
  request.mutable_filter()->add_jobs("1");
  v1::ListAttemptsResponse attempts;
  ASSERT_TRUE(results_->ListAttempts(Context().get(), request, &attempts).ok());
  ASSERT_EQ(attempts.rows_size(), 6);
  EXPECT_EQ(attempts.rows(5).outcome(), v1::ATTEMPT_OUTCOME_LOST);
  EXPECT_EQ(Analyze(OfSweep({MeanAblation()})).queued(), 2u) << "it may be asked for again";
}

TEST_F(AnalyzeTest, CancellingGivesTheJobsBackAsTheyWere) {
  Analyze(OfSweep({MeanAblation()}));
  FakeWorker worker(channel_, "analyst", 1);
  Script script(worker.AwaitAssignment());
  worker.Send({script.Started(3, 3)});
  worker.AwaitAck(script.assignment().attempt_id(), 1);
  v1::CancelRequest request;
  request.mutable_sweep()->set_sweep("s");
  v1::CancelResponse response;
  ASSERT_TRUE(sweeps_->Cancel(Context().get(), request, &response).ok());
  EXPECT_EQ(response.jobs_cancelled(), 2u);
  EXPECT_EQ(worker.AwaitStop().reason(), v1::StopAttempt::CANCELLED);
  EXPECT_EQ(AwaitFinished().jobs().succeeded(), 2u);
  worker.Send({script.Finished(v1::ATTEMPT_OUTCOME_CANCELLED)});
  EXPECT_FALSE(worker.AwaitAck(script.assignment().attempt_id(), 2).superseded());
  EXPECT_EQ(Training(), before_);
  // The slot is free again.
  EXPECT_EQ(Analyze(OfSweep({MeanAblation()})).queued(), 2u);
  EXPECT_TRUE(worker.AwaitAssignment().has_weights());
}

TEST_F(AnalyzeTest, StatusSaysWhichAnalysisNobodyHas) {
  FakeWorker worker(channel_, "old", 1, {},
                    R"({"analyses":[{"name":"head_ablation","version":1}]})");
  worker.AwaitWelcome();
  Analyze(OfSweep({MeanAblation()}));
  const v1::Sweep waiting =
      AwaitSweep("s", [](const auto& s) { return !s.waiting_reason().empty(); });
  EXPECT_THAT(
      waiting.waiting_reason(),
      HasSubstr(
          "worker test-host (old): its trainer has analysis head_ablation in version 1, not 2"));
}

TEST_F(AnalyzeTest, WatchersSeeThatAJobIsAnalyzed) {
  Analyze(OfSweep({MeanAblation()}));
  FakeWorker worker(channel_, "analyst", 2);
  Script first(worker.AwaitAssignment());
  Script second(worker.AwaitAssignment());
  worker.Send({first.Started(3, 3)});
  v1::WatchSweepRequest request;
  request.mutable_sweep()->set_sweep("s");
  grpc::ClientContext context;
  const auto stream = sweeps_->WatchSweep(&context, request);
  v1::SweepUpdate update;
  bool seen = false;
  while (!seen && stream->Read(&update)) {
    seen = update.running_size() == 1 && update.running(0).analysing();
  }
  EXPECT_TRUE(seen);
  Script again(first.assignment());
  again.Started(3, 3);  // sent before
  worker.Send({again.Ablation(), again.Finished(v1::ATTEMPT_OUTCOME_SUCCEEDED)});
  worker.Send(WholeAnalysis(second));
  while (stream->Read(&update)) {
  }
  EXPECT_EQ(update.sweep().state(), v1::SWEEP_STATE_FINISHED);
  EXPECT_TRUE(stream->Finish().ok());
}

TEST_F(CoordinatorTest, LaterAttemptsAreToldHowTheFirstComputed) {
  Submit(Document("one", "[0]"), "a");
  v1::Assignment first;
  {
    FakeWorker worker(channel_, "w1", 1);
    Script script(worker.AwaitAssignment());
    first = script.assignment();
    EXPECT_FALSE(first.has_execution());
    v1::Event hello = script.Started(0, 3, /*threads=*/3);
    hello.mutable_started()->mutable_execution()->set_micro_batch(64);
    worker.Send({hello, script.Epoch(0), script.Finished(v1::ATTEMPT_OUTCOME_PREEMPTED)});
    worker.AwaitAck(first.attempt_id(), script.sequence());
  }
  FakeWorker worker(channel_, "w2", 2);
  for (int i = 0; i < 2; ++i) {
    const v1::Assignment assignment = worker.AwaitAssignment();
    EXPECT_EQ(assignment.has_execution(), assignment.job_id() == first.job_id());
    if (!assignment.has_execution()) continue;
    EXPECT_EQ(assignment.execution().threads(), 3);
    EXPECT_EQ(assignment.execution().micro_batch(), 64);
    EXPECT_EQ(assignment.execution().packing(), 1);
  }
}

TEST_F(AnalyzeTest, NestedParametersAreRefused) {
  v1::AnalyzeRequest request = OfSweep({MeanAblation()});
  const int deep = 200'000;
  std::string nested = "{\"method\":" + std::string(deep, '[') + std::string(deep, ']') + "}";
  request.mutable_analyses(0)->set_parameters_json(std::move(nested));
  v1::AnalyzeResponse response;
  const grpc::Status status = sweeps_->Analyze(Context().get(), request, &response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(status.error_message(),
            "parameters_json of analysis \"head_ablation\" is nested more than 64 deep");
}

TEST_F(CoordinatorTest, AMatrixOfAnotherModelOrOtherDataFailsItsAttempt) {
  const auto shape = [](int layers, int heads) {
    return [=](v1::HeadAblation& matrix) {
      matrix.set_layers(layers);
      matrix.set_heads(heads);
      for (auto* counts :
           {matrix.mutable_correct(), matrix.mutable_lost(), matrix.mutable_gained()}) {
        counts->Clear();
        counts->Resize(layers * heads, counts == matrix.mutable_correct() ? 42 : 0);
      }
      for (auto* reals : {matrix.mutable_nll(), matrix.mutable_nll_standard_error()}) {
        reals->Clear();
        reals->Resize(layers * heads, 1);
      }
    };
  };
  const std::vector<std::pair<std::function<void(v1::HeadAblation&)>, std::string>> cases = {
      {shape(1, 1), "it has 1 layers of 1 heads; allowed: 2 layers of 2 heads, as the job's model"},
      {shape(8, 8), "it has 8 layers of 8 heads; allowed: 2 layers of 2 heads, as the job's model"},
      {[](auto& matrix) { matrix.set_total(98); },
       "\"total\" is 98; allowed: 97, as the examples that were asked for"}};
  FakeWorker worker(channel_, "w1", 1);
  for (std::size_t i = 0; i < cases.size(); ++i) {
    Submit(Document(absl::StrCat("s", i), absl::StrCat("[", i, "]")), absl::StrCat("token", i));
    Script script(worker.AwaitAssignment());
    worker.Send({script.Started(0, 3), script.Epoch(0), script.Epoch(1), script.Epoch(2)});
    v1::Event matrix = script.Ablation();
    cases[i].first(*matrix.mutable_head_ablation());
    worker.Send({matrix});
    EXPECT_TRUE(worker.AwaitAck(script.assignment().attempt_id(), script.sequence()).superseded());
    v1::ListAttemptsResponse attempts;
    ASSERT_TRUE(results_->ListAttempts(Context().get(), {}, &attempts).ok());
    std::string errors;
    for (const auto& row : attempts.rows()) absl::StrAppend(&errors, row.error(), "\n");
    EXPECT_THAT(errors, HasSubstr(cases[i].second));
  }
  v1::ListHeadAblationsResponse stored;
  ASSERT_TRUE(results_->ListHeadAblations(Context().get(), {}, &stored).ok());
  EXPECT_EQ(stored.rows_size(), 0);
}

TEST_F(CoordinatorTest, AMatrixWithoutItsLossesFailsItsAttemptOnly) {
  Submit(Document("one", "[0]"), "a");
  FakeWorker worker(channel_, "w1", 1);
  Script script(worker.AwaitAssignment());
  v1::Event matrix;
  worker.Send({script.Started(0, 3), script.Epoch(0), script.Epoch(1), script.Epoch(2)});
  matrix = script.Ablation();
  matrix.mutable_head_ablation()->clear_nll();
  worker.Send({matrix});
  EXPECT_TRUE(worker.AwaitAck(script.assignment().attempt_id(), script.sequence()).superseded());
  Script other(worker.AwaitAssignment());  // the session goes on
  EXPECT_NE(other.assignment().attempt_id(), script.assignment().attempt_id());
  v1::ListAttemptsResponse attempts;
  ASSERT_TRUE(results_->ListAttempts(Context().get(), {}, &attempts).ok());
  EXPECT_THAT(attempts.rows(0).error(),
              HasSubstr("\"nll\" has 0 entries; allowed: 4, for 2 layers of 2 heads"));
}

}  // namespace
}  // namespace pelab
