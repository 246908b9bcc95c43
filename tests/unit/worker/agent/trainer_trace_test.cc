#include "worker/agent/trainer_trace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <string>

#include "core/experiment/canonical_json.h"
#include "tests/support/status_matchers.h"

namespace pelab::agent {
namespace {

using ::testing::HasSubstr;

constexpr ExitStatus kExit0 = {};
constexpr ExitStatus kExit1 = {false, 1};
constexpr ExitStatus kExit75 = {false, 75};
constexpr ExitStatus kSigkill = {true, 9};

event::TrainerLine Hello(int start, int epochs) {
  event::FactLine line;
  line.event.mutable_started()->set_start_epoch(start);
  line.event.mutable_started()->set_epochs(epochs);
  return line;
}
event::TrainerLine Epoch(int epoch) {
  event::FactLine line;
  line.event.mutable_epoch()->set_epoch(epoch);
  return line;
}
event::TrainerLine AblationLine(int version = 2, const std::string& parameters = "{}") {
  event::FactLine line;
  line.event.mutable_head_ablation()->set_version(version);
  line.event.mutable_head_ablation()->set_parameters_json(parameters);
  return line;
}
event::TrainerLine Done() { return event::DoneLine{"w", "", 1, 2.5}; }
event::TrainerLine Error(state::ErrorKind kind) { return event::ErrorLine{kind, "it broke"}; }

v1::Assignment MakeAssignment(int max_start_epoch = 0, bool ablation = false) {
  v1::Assignment assignment;
  assignment.set_max_start_epoch(max_start_epoch);
  if (ablation) {
    v1::Analysis* analysis = assignment.add_analyses();
    analysis->set_name("head_ablation");
    analysis->set_version(2);
    analysis->set_parameters_json("{}");
  }
  return assignment;
}

// The error message for the last of `lines`; all others must be accepted.
std::string Complaint(TrainerTrace trace, std::vector<event::TrainerLine> lines) {
  for (std::size_t i = 0; i + 1 < lines.size(); ++i) EXPECT_THAT(trace.Accept(lines[i]), IsOk());
  const auto last = trace.Accept(lines.back());
  return last.ok() ? "nothing" : std::string(last.status().message());
}

TEST(TrainerTrace, AcceptsAWholeRunAndAResumedOne) {
  const TrainerTrace ablation(MakeAssignment(0, true));
  EXPECT_EQ(Complaint(ablation, {Hello(0, 2), Epoch(0), event::CheckpointLine{1, "c"}, Epoch(1),
                                 AblationLine(), Done()}),
            "nothing");
  EXPECT_EQ(Complaint(TrainerTrace(MakeAssignment(5)),
                      {Hello(5, 6), Epoch(5), event::UnknownLine{"weather"}, Done()}),
            "nothing");
  EXPECT_EQ(Complaint(TrainerTrace(MakeAssignment(6)), {Hello(6, 6), Done()}), "nothing");
}

TEST(TrainerTrace, RefusesWhatCannotFollow) {
  const TrainerTrace fresh(MakeAssignment(0));
  EXPECT_THAT(Complaint(fresh, {Epoch(0)}), HasSubstr("before its hello"));
  EXPECT_THAT(Complaint(fresh, {Hello(0, 3), Hello(0, 3)}), HasSubstr("hello twice"));
  EXPECT_THAT(Complaint(fresh, {Hello(1, 3)}),
              HasSubstr("starts at epoch 1 of 3; allowed: at most 0"));
  EXPECT_THAT(Complaint(fresh, {Hello(0, 3), Epoch(0), Epoch(0)}),
              HasSubstr("reported epoch 0 of 3; expected 1"));
  EXPECT_THAT(Complaint(fresh, {Hello(0, 3), Epoch(0), Epoch(2)}), HasSubstr("expected 1"));
  EXPECT_THAT(Complaint(fresh, {Hello(0, 1), Epoch(0), Epoch(1)}),
              HasSubstr("reported epoch 1 of 1"));
  EXPECT_THAT(Complaint(fresh, {Hello(0, 3), Epoch(0), Done()}),
              HasSubstr("done after 1 of 3 epochs"));
  EXPECT_THAT(Complaint(fresh, {Hello(0, 1), Epoch(0), AblationLine()}),
              HasSubstr("not asked for"));
  const TrainerTrace ablation(MakeAssignment(0, true));
  EXPECT_THAT(Complaint(ablation, {Hello(0, 1), Epoch(0), AblationLine(3)}),
              HasSubstr("head_ablation, version 3, parameters {}, which was not asked for"));
  EXPECT_THAT(Complaint(ablation, {Hello(0, 1), Epoch(0), AblationLine(2, R"({"method":"x"})")}),
              HasSubstr(R"(version 2, parameters {"method":"x"}, which was not asked for)"));
  EXPECT_THAT(Complaint(ablation, {Hello(0, 1), Epoch(0), AblationLine(), AblationLine()}),
              HasSubstr("not asked for"))
      << "once only";
  EXPECT_THAT(Complaint(ablation, {Hello(0, 1), Epoch(0), Done()}),
              HasSubstr("done without analysis head_ablation"));
  EXPECT_THAT(Complaint(fresh, {Hello(0, 1), Epoch(0), Done(), Epoch(1)}),
              HasSubstr("after its last event"));
}

TEST(TrainerTrace, RefusesResultsOfAnotherModelOrOtherData) {
  v1::Assignment assignment = MakeAssignment(0, /*ablation=*/true);
  const auto whole = [](std::int64_t value) { return catalog::Value(value); };
  assignment.set_spec_json(ToCanonicalJson(experiment::MakeJob("clean", "rope", "distance", 1,
                                                               {{"task.train_examples", whole(70)},
                                                                {"task.test_examples", whole(30)},
                                                                {"model.layers", whole(2)},
                                                                {"model.heads", whole(4)}})));
  const auto epoch = [](int test_total) {
    event::FactLine line;
    line.event.mutable_epoch()->set_train_total(70);
    line.event.mutable_epoch()->set_test_total(test_total);
    return event::TrainerLine(line);
  };
  const auto matrix = [](int layers) {
    event::FactLine line = std::get<event::FactLine>(AblationLine());
    line.event.mutable_head_ablation()->set_layers(layers);
    line.event.mutable_head_ablation()->set_heads(4);
    line.event.mutable_head_ablation()->set_total(30);
    return event::TrainerLine(line);
  };
  const TrainerTrace trace(assignment);
  EXPECT_EQ(Complaint(trace, {Hello(0, 1), epoch(30), matrix(2), Done()}), "nothing");
  EXPECT_EQ(Complaint(trace, {Hello(0, 1), epoch(4)}),
            "the trainer printed what cannot be: epoch 0: \"test_total\" is 4; allowed: 30, as the "
            "job's test examples");
  EXPECT_THAT(Complaint(trace, {Hello(0, 1), epoch(30), matrix(3)}),
              HasSubstr("it has 3 layers of 4 heads; allowed: 2 layers of 4 heads"));
}

v1::Execution Settings(int threads, int micro_batch, int packing) {
  v1::Execution execution;
  execution.set_threads(threads);
  execution.set_micro_batch(micro_batch);
  execution.set_packing(packing);
  return execution;
}

TEST(TrainerTrace, HoldsATrainerToTheSettingsOfTheFirstAttempt) {
  v1::Assignment assignment = MakeAssignment(0);
  *assignment.mutable_execution() = Settings(2, 64, 1);
  const auto hello = [](const v1::Execution& execution) {
    event::FactLine line;
    line.event.mutable_started()->set_epochs(3);
    *line.event.mutable_started()->mutable_execution() = execution;
    return event::TrainerLine(line);
  };
  EXPECT_EQ(Complaint(TrainerTrace(assignment), {hello(Settings(2, 64, 1))}), "nothing");
  EXPECT_THAT(Complaint(TrainerTrace(assignment), {hello(Settings(4, 64, 1))}),
              HasSubstr("with 4 threads, micro-batches of 64 and packing 1; the job began with 2"));
  EXPECT_THAT(Complaint(TrainerTrace(assignment), {hello(Settings(2, 0, 1))}),
              HasSubstr("micro-batches of 0"));
  EXPECT_THAT(Complaint(TrainerTrace(assignment), {hello(Settings(2, 64, 2))}),
              HasSubstr("packing 2"));
  EXPECT_EQ(Complaint(TrainerTrace(MakeAssignment(0)), {hello(Settings(7, 8, 9))}), "nothing")
      << "the first attempt chooses";
}

TEST(TrainerTrace, AnAnalysisTrainsNothing) {
  v1::Assignment assignment = MakeAssignment(3, /*ablation=*/true);
  assignment.mutable_weights()->set_sha256("abc");
  EXPECT_EQ(Complaint(TrainerTrace(assignment), {Hello(3, 3), AblationLine(), event::DoneLine{}}),
            "nothing");
  EXPECT_THAT(Complaint(TrainerTrace(assignment), {Hello(2, 3)}),
              HasSubstr("starts at epoch 2 of 3, but was asked for analyses only"));
  EXPECT_THAT(Complaint(TrainerTrace(assignment), {Hello(3, 3), event::DoneLine{}}),
              HasSubstr("without analysis head_ablation"));
}

v1::Finished Conclude(std::vector<event::TrainerLine> lines, ExitStatus exit,
                      StopReason reason = StopReason::kNone,
                      const absl::Status& output = absl::OkStatus()) {
  TrainerTrace trace(MakeAssignment(0));
  for (event::TrainerLine& line : lines) EXPECT_THAT(trace.Accept(std::move(line)), IsOk());
  return trace.Conclude(exit, reason, output, "first\n  last \x01words\n\n", 7);
}

TEST(TrainerTrace, EndsByWhatWasSaidAndHowItEnded) {
  const std::vector<event::TrainerLine> whole = {Hello(0, 1), Epoch(0), Done()};
  const v1::Finished success = Conclude(whole, kExit0);
  EXPECT_EQ(success.outcome(), v1::ATTEMPT_OUTCOME_SUCCEEDED);
  EXPECT_EQ(success.wall_seconds(), 2.5);

  // The job is done, but the trainer failed at its end, so the weights may be incomplete.
  EXPECT_EQ(Conclude(whole, kSigkill).error_kind(), v1::ERROR_KIND_TRAINER_DIED);

  const v1::Finished error = Conclude({Hello(0, 1), Error(state::ErrorKind::kOutOfMemory)}, kExit1);
  EXPECT_EQ(error.outcome(), v1::ATTEMPT_OUTCOME_FAILED);
  EXPECT_EQ(error.error_kind(), v1::ERROR_KIND_OUT_OF_MEMORY);
  EXPECT_EQ(error.error(), "it broke");
  EXPECT_EQ(error.wall_seconds(), 7);

  // This worker had not asked it to stop.
  const v1::Finished by_itself = Conclude({Hello(0, 1)}, kExit75);
  EXPECT_EQ(by_itself.outcome(), v1::ATTEMPT_OUTCOME_PREEMPTED);
  EXPECT_EQ(by_itself.error_kind(), v1::ERROR_KIND_TRAINER_DIED);
  EXPECT_THAT(by_itself.error(), HasSubstr("SIGTERM from elsewhere"));
  const v1::Finished killed = Conclude({}, {.signaled = true, .code = SIGTERM});
  EXPECT_EQ(killed.outcome(), v1::ATTEMPT_OUTCOME_PREEMPTED);
  EXPECT_EQ(killed.error_kind(), v1::ERROR_KIND_TRAINER_DIED);
  EXPECT_THAT(killed.error(), HasSubstr("it came from elsewhere"));
  EXPECT_EQ(Conclude({Hello(0, 1)}, kSigkill).error(),
            "the trainer ended by signal 9 (killed); its last words: last ?words");
  EXPECT_EQ(Conclude({}, kExit0).error(),
            "the trainer exited with status 0 before it was done; its last words: last ?words");
  EXPECT_EQ(Conclude({}, kExit0).outcome(), v1::ATTEMPT_OUTCOME_FAILED);

  const v1::Finished malformed =
      Conclude({}, kSigkill, StopReason::kNone, absl::InvalidArgumentError("a bad line"));
  EXPECT_EQ(malformed.error_kind(), v1::ERROR_KIND_INTERNAL);
  EXPECT_EQ(malformed.error(), "a bad line");
  EXPECT_EQ(Conclude({}, kSigkill, StopReason::kNone, absl::ResourceExhaustedError("disk full"))
                .error_kind(),
            v1::ERROR_KIND_IO);
}

TEST(TrainerTrace, AStallIsAFailureOfItsOwnKindUnlessItHadSaidHowItEnded) {
  const absl::Status stall = absl::DeadlineExceededError("it said nothing for 12 min");
  const auto conclude = [&](std::vector<event::TrainerLine> lines, ExitStatus exit) {
    return Conclude(std::move(lines), exit, StopReason::kNone, stall);
  };
  const v1::Finished stalled = conclude({Hello(0, 2), Epoch(0)}, kExit75);
  EXPECT_EQ(stalled.outcome(), v1::ATTEMPT_OUTCOME_FAILED);
  EXPECT_EQ(stalled.error_kind(), v1::ERROR_KIND_STALLED);
  EXPECT_EQ(stalled.error(), "it said nothing for 12 min");
  EXPECT_EQ(conclude({Hello(0, 1), Epoch(0), Done()}, kExit0).outcome(),
            v1::ATTEMPT_OUTCOME_SUCCEEDED);
  EXPECT_EQ(conclude({Hello(0, 1), Epoch(0), Done()}, kSigkill).error_kind(),
            v1::ERROR_KIND_STALLED);
  EXPECT_EQ(conclude({Error(state::ErrorKind::kOutOfMemory)}, kSigkill).error_kind(),
            v1::ERROR_KIND_OUT_OF_MEMORY);
}

TEST(TrainerTrace, AStopDecides) {
  const std::vector<event::TrainerLine> whole = {Hello(0, 1), Epoch(0), Done()};
  EXPECT_EQ(Conclude({Hello(0, 1)}, kSigkill, StopReason::kCancel).outcome(),
            v1::ATTEMPT_OUTCOME_CANCELLED);
  EXPECT_EQ(Conclude(whole, kExit0, StopReason::kCancel).outcome(), v1::ATTEMPT_OUTCOME_CANCELLED);
  EXPECT_EQ(Conclude({Hello(0, 1)}, kSigkill, StopReason::kShutdown).outcome(),
            v1::ATTEMPT_OUTCOME_PREEMPTED);
  const v1::Finished asked = Conclude({Hello(0, 1)}, kExit75, StopReason::kPreempt);
  EXPECT_EQ(asked.outcome(), v1::ATTEMPT_OUTCOME_PREEMPTED);
  EXPECT_EQ(asked.error_kind(), v1::ERROR_KIND_UNSPECIFIED) << "its worker had asked for it";
  // The trainer was done before it got the signal, or failed for another reason.
  EXPECT_EQ(Conclude(whole, kExit0, StopReason::kPreempt).outcome(), v1::ATTEMPT_OUTCOME_SUCCEEDED);
  EXPECT_EQ(Conclude({Error(state::ErrorKind::kIo)}, kExit1, StopReason::kShutdown).outcome(),
            v1::ATTEMPT_OUTCOME_FAILED);
}

}  // namespace
}  // namespace pelab::agent
