// Claim sheets over RPC: registration, rounds that do not depend on who asks, and jobs that do not
// come. The worker is played by the test.
#include <gmock/gmock.h>

#include <cmath>
#include <cstdint>
#include <set>
#include <thread>
#include <vector>

#include "absl/strings/str_replace.h"
#include "core/claims/sheet.h"
#include "core/stats/e_value.h"
#include "pelab/v1/claims.grpc.pb.h"
#include "tests/contract/rpc/coordinator_fixture.h"

namespace pelab {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// RoPE's made-up accuracy is always the higher one. One claim with two hypotheses is decided at an
// e-value of 2 / 0.5 = 4: after four seeds, e(4, 4) = 6.2.
constexpr char kSheet[] = R"(
name: settled
sweep: sweep.yaml
false_discovery_rate: 0.5
max_seeds: 6
claims:
  - {id: rope-above-nope, above: {metric: test_accuracy, a: pe=rope, b: pe=nope}}
)";

class SettlingTest : public CoordinatorTest {
 protected:
  void SetUp() override {
    CoordinatorTest::SetUp();
    ConnectClaims();
  }
  void ConnectClaims() { claims_ = v1::Claims::NewStub(channel_); }

  grpc::Status Register(v1::Settlement* settlement, const std::string& sheet = kSheet,
                        bool any_seeds = false, int slots = 2) {
    v1::RegisterSheetRequest request;
    request.set_document(sheet);
    request.set_file_name("sheet.yaml");
    request.set_sweep_document(Document("sweep"));
    request.set_any_seeds(any_seeds);
    request.set_slots(slots);
    return claims_->RegisterSheet(Context().get(), request, settlement);
  }
  v1::Settlement Registered(bool any_seeds = false) {
    v1::Settlement settlement;
    const grpc::Status status = Register(&settlement, kSheet, any_seeds);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return settlement;
  }
  v1::Settlement Advance(std::int64_t begin, bool again = false) {
    v1::AdvanceRequest request;
    request.mutable_sheet()->set_sheet("settled");
    request.set_begin_round(begin);
    request.set_again(again);
    v1::Settlement settlement;
    const grpc::Status status = claims_->Advance(Context().get(), request, &settlement);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return settlement;
  }
  // Runs the next `jobs` jobs to their ends.
  void RunJobs(FakeWorker& worker, int jobs) {
    for (int i = 0; i < jobs; ++i) {
      Script script(worker.AwaitAssignment());
      const int correct = script.assignment().pe() == "rope" ? 60 : 30;
      worker.Send({script.Started(0, 3), script.Epoch(0, correct), script.Epoch(1, correct),
                   script.Epoch(2, correct), script.Ablation(),
                   script.Finished(v1::ATTEMPT_OUTCOME_SUCCEEDED)});
      worker.AwaitAck(script.assignment().attempt_id(), script.sequence());
    }
  }
  // The state of the round when the sheet's sweep has no job left to run.
  v1::Settlement AfterTheRound() {
    AwaitSweep("settled", [](const auto& s) {
      return s.state() == v1::SWEEP_STATE_FINISHED || s.state() == v1::SWEEP_STATE_CANCELLED;
    });
    return Advance(0);
  }

  std::unique_ptr<v1::Claims::Stub> claims_;
};

TEST_F(SettlingTest, ABudgetBeginsNothing) {
  Registered();
  v1::AdvanceRequest request;
  request.mutable_sheet()->set_sheet("settled");
  request.set_stopped_by("--budget 1h: 58m were spent");
  v1::Settlement settlement;
  ASSERT_TRUE(claims_->Advance(Context().get(), request, &settlement).ok());
  EXPECT_EQ(settlement.next().round(), 1);
  EXPECT_FALSE(settlement.has_open());
  request.set_begin_round(1);
  EXPECT_EQ(claims_->Advance(Context().get(), request, &settlement).error_code(),
            grpc::StatusCode::INVALID_ARGUMENT);
  request.set_begin_round(0);
  for (const std::string& text : {std::string("two\nlines"), std::string(1001, 'x')}) {
    request.set_stopped_by(text);
    EXPECT_EQ(claims_->Advance(Context().get(), request, &settlement).error_code(),
              grpc::StatusCode::INVALID_ARGUMENT);
  }
}

TEST_F(SettlingTest, ARequestPutsOnlySoManyClaimsAside) {
  Registered();
  v1::AdvanceRequest request;
  request.mutable_sheet()->set_sheet("settled");
  for (std::size_t i = 0; i <= claims::kMaxClaims; ++i) request.add_put_aside("rope-above-nope");
  v1::Settlement settlement;
  const grpc::Status status = claims_->Advance(Context().get(), request, &settlement);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(status.error_message(), HasSubstr("1001 claims are to be put aside; at most 1000"));
}

TEST_F(SettlingTest, RoundsGoOnUntilTheClaimIsDecided) {
  const v1::Settlement registered = Registered();
  EXPECT_TRUE(registered.registered_now());
  EXPECT_EQ(registered.next().round(), 1);
  EXPECT_EQ(registered.next().jobs(), 2);
  EXPECT_FALSE(registered.sheet().has_sweep_id());
  EXPECT_FALSE(Registered().registered_now()) << "the same sheet is the same registration";
  EXPECT_TRUE(Advance(0).has_next()) << "nothing begins unasked";
  EXPECT_TRUE(Advance(2).has_next()) << "nor a round that is not the next one";
  FakeWorker worker(channel_, "w1", 2);
  std::vector<std::int64_t> seeds;
  v1::Settlement state = registered;
  for (int round = 1; state.has_next(); ++round) {
    state = Advance(round);
    ASSERT_TRUE(state.has_open());
    EXPECT_EQ(state.open().round().round(), round);
    EXPECT_EQ(state.open().blocked_jobs(), 0);
    EXPECT_TRUE(Advance(round + 1).has_open()) << "a round is over before the next one begins";
    seeds.push_back(state.open().round().first_seed());
    RunJobs(worker, 2);
    if (round == 2) {
      Restart();
      ConnectClaims();
    }
    state = AfterTheRound();
    ASSERT_FALSE(state.has_open());
    EXPECT_EQ(state.sheet().ended_rounds(), round);
    if (round == 2) break;
  }
  FakeWorker other(channel_, "w2", 2);
  for (int round = 3; state.has_next(); ++round) {
    seeds.push_back(Advance(round).open().round().first_seed());
    RunJobs(other, 2);
    state = AfterTheRound();
  }
  EXPECT_THAT(seeds, ElementsAre(0, 1, 2, 3));
  ASSERT_EQ(state.claims_size(), 1);
  EXPECT_EQ(state.claims(0).verdict(), "holds");
  EXPECT_EQ(state.claims(0).standing(), "decided");
  EXPECT_EQ(state.claims(0).seeds(), 4);
  EXPECT_EQ(state.claims(0).exploratory(), 0);
  EXPECT_EQ(state.claims(0).log_e_holds(), stats::LogEValue({4, 4}));
  EXPECT_NEAR(state.claims(0).log_threshold(), std::log(4), 1e-12);
  EXPECT_EQ(state.claims(0).leans_to(), "holds");
  EXPECT_THAT((std::vector{state.claims(0).k(), state.claims(0).n(), state.claims(0).shows()}),
              ElementsAre(4, 4, 4));
  EXPECT_EQ(state.jobs(), 8);
  EXPECT_NEAR(state.slot_seconds(), 8 * 1.5, 1e-9);
  EXPECT_FALSE(Advance(5).has_next());
}

TEST_F(SettlingTest, ASecondRegistrationTellsOfTheRoundThatIsUnderWay) {
  Registered();
  Advance(1);
  const v1::Settlement second = Registered();
  EXPECT_FALSE(second.registered_now());
  EXPECT_EQ(second.open().round().round(), 1) << "without it the sheet would count as settled";
}

TEST_F(SettlingTest, ManyWhoAskAtOnceGetOneRound) {
  Registered();
  std::vector<std::thread> askers;
  for (int i = 0; i < 8; ++i) {
    askers.emplace_back([this] {
      v1::AdvanceRequest request;
      request.mutable_sheet()->set_sheet("settled");
      request.set_begin_round(1);
      v1::Settlement settlement;
      EXPECT_TRUE(claims_->Advance(Context().get(), request, &settlement).ok());
      EXPECT_TRUE(settlement.has_open());
    });
  }
  for (std::thread& asker : askers) asker.join();
  const v1::Sweep sweep = GetSweep("settled");
  EXPECT_THAT(sweep.extensions(), ElementsAre("0 of 0..1"));
  EXPECT_EQ(sweep.cells(), 2u);
}

TEST_F(SettlingTest, SeedsThatAreStoredArePassedOverOrExploratory) {
  Submit(Document("before", "[0, 1, 7, 1500]"), "a");
  const v1::Settlement fresh = Registered();
  EXPECT_EQ(fresh.sheet().first_seed(), 8) << "seeds for pilots do not count";
  EXPECT_EQ(fresh.sheet().fresh_from(), 8);
  v1::Settlement other;
  const grpc::Status taken = Register(&other, absl::StrCat(kSheet, "# edited\n"), true);
  EXPECT_EQ(taken.error_code(), grpc::StatusCode::ALREADY_EXISTS);
  EXPECT_THAT(taken.error_message(), HasSubstr("pelab claims diff 1 FILE"));
  const std::string renamed = absl::StrReplaceAll(kSheet, {{"name: settled", "name: other"}});
  ASSERT_TRUE(Register(&other, renamed, true).ok());
  EXPECT_EQ(other.sheet().first_seed(), 0);
  EXPECT_EQ(other.sheet().fresh_from(), 8);
  EXPECT_NE(other.sheet().sheet_id(), fresh.sheet().sheet_id());
  v1::Settlement none;
  const grpc::Status status = Register(
      &none, absl::StrReplaceAll(kSheet, {{"name: settled", "first_seed: 996\nname: late"}}));
  EXPECT_EQ(status.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_THAT(status.error_message(), HasSubstr("the sheet needs 6 below 1000"));
}

TEST_F(SettlingTest, AJobThatIsCancelledOrBreaksIsQueuedAgainOnlyIfAsked) {
  Registered();
  Advance(1);
  v1::CancelRequest cancel;
  AwaitSweep("settled", [](const auto& s) { return s.jobs().queued() == 2; });
  const v1::ListJobsResponse jobs = Jobs("settled");
  for (const v1::JobRow& job : jobs.jobs()) {
    if (job.pe() == "rope") cancel.set_job(absl::StrCat(job.job_id()));
  }
  v1::CancelResponse cancelled;
  ASSERT_TRUE(sweeps_->Cancel(Context().get(), cancel, &cancelled).ok());
  FakeWorker worker(channel_, "w1", 2);
  Script script(worker.AwaitAssignment());
  worker.Send({script.Started(0, 3), script.Finished(v1::ATTEMPT_OUTCOME_FAILED,
                                                     v1::ERROR_KIND_OUT_OF_MEMORY, "too large")});
  worker.AwaitAck(script.assignment().attempt_id(), script.sequence());
  v1::Settlement state = AfterTheRound();
  ASSERT_EQ(state.open().blocked_size(), 2);
  std::set<std::string> reasons;
  for (const v1::BlockedJob& job : state.open().blocked()) reasons.insert(job.reason());
  EXPECT_THAT(reasons, ElementsAre("it was cancelled", HasSubstr("too large")));
  EXPECT_EQ(state.sheet().ended_rounds(), 0);
  state = Advance(0, /*again=*/true);
  EXPECT_EQ(state.open().blocked_jobs(), 0);
  RunJobs(worker, 2);
  EXPECT_EQ(AfterTheRound().sheet().ended_rounds(), 1);
}

TEST_F(SettlingTest, ALossThatIsNotFiniteIsAnOutcome) {
  Registered();
  Advance(1);
  FakeWorker worker(channel_, "w1", 2);
  for (int i = 0; i < 2; ++i) {
    Script script(worker.AwaitAssignment());
    if (script.assignment().pe() == "rope") {
      worker.Send({script.Started(0, 3),
                   script.Finished(v1::ATTEMPT_OUTCOME_FAILED, v1::ERROR_KIND_NON_FINITE_LOSS,
                                   "the loss of epoch 1 is nan")});
    } else {
      worker.Send(script.Whole(3));
    }
    worker.AwaitAck(script.assignment().attempt_id(), script.sequence());
  }
  const v1::Settlement state = AfterTheRound();
  EXPECT_EQ(state.sheet().ended_rounds(), 1);
  EXPECT_EQ(state.claims(0).log_e_holds(), stats::LogEValue({0, 1}));
  EXPECT_EQ(state.claims(0).log_e_fails(), stats::LogEValue({1, 1}));
}

TEST_F(SettlingTest, ASweepThatIsDeletedEndsTheSheetAndKeepsWhatWasFound) {
  Registered();
  Advance(1);
  FakeWorker worker(channel_, "w1", 2);
  RunJobs(worker, 2);
  EXPECT_EQ(AfterTheRound().sheet().ended_rounds(), 1);
  v1::DeleteRequest request;
  request.mutable_sweep()->set_sweep("settled");
  v1::DeleteResponse deleted;
  ASSERT_TRUE(sweeps_->Delete(Context().get(), request, &deleted).ok());
  const v1::Settlement state = Advance(0);
  EXPECT_FALSE(state.sheet().has_sweep_id());
  EXPECT_EQ(state.claims(0).seeds(), 1);
  v1::AdvanceRequest further;
  further.mutable_sheet()->set_sheet("settled");
  further.set_begin_round(2);
  v1::Settlement refused;
  EXPECT_THAT(claims_->Advance(Context().get(), further, &refused).error_message(),
              HasSubstr("was deleted with its results"));
}

TEST_F(SettlingTest, ASheetIsFoundByNumberNameAndHash) {
  const v1::Settlement registered = Registered();
  for (const std::string& name :
       {std::string("settled"), absl::StrCat(registered.sheet().sheet_id()),
        registered.sheet().sha256().substr(0, 6), registered.sheet().sha256()}) {
    v1::GetSheetRequest request;
    request.mutable_sheet()->set_sheet(name);
    v1::Sheet sheet;
    ASSERT_TRUE(claims_->GetSheet(Context().get(), request, &sheet).ok()) << name;
    EXPECT_EQ(sheet.row().document(), kSheet);
    EXPECT_EQ(sheet.rounds_size(), 0);
  }
  v1::GetSheetRequest request;
  request.mutable_sheet()->set_sheet("other");
  v1::Sheet sheet;
  EXPECT_EQ(claims_->GetSheet(Context().get(), request, &sheet).error_code(),
            grpc::StatusCode::NOT_FOUND);
  v1::ListSheetsResponse listed;
  ASSERT_TRUE(claims_->ListSheets(Context().get(), {}, &listed).ok());
  ASSERT_EQ(listed.rows_size(), 1);
  EXPECT_EQ(listed.rows(0).document(), "") << "a list has no documents";
}

TEST_F(SettlingTest, BadRequestsRegisterNothing) {
  v1::Settlement settlement;
  EXPECT_EQ(Register(&settlement, "name: s\n").error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  const std::string lacks = absl::StrCat(
      "name: s\nsweep: sweep.yaml\nclaims: [{id: a, above: {metric: test_accuracy, a: pe=mla, ",
      "b: pe=nope}}]\n");
  EXPECT_EQ(Register(&settlement, lacks).error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  const std::string no_analyses = absl::StrCat(
      "name: s\nsweep: {name: t, pe: [rope, nope], task: {name: distance, length: 16}, ",
      "analyses: []}\nclaims: [{id: a, most: {metric: deposit, cell: pe=rope}}]\n");
  EXPECT_THAT(Register(&settlement, no_analyses).error_message(),
              HasSubstr("the sweep needs analyses: [head_ablation]"));
  EXPECT_EQ(Register(&settlement, kSheet, false, -1).error_code(),
            grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(Register(&settlement, std::string(2 << 20, '#')).error_code(),
            grpc::StatusCode::INVALID_ARGUMENT);
  v1::ListSheetClaimsRequest request;
  request.mutable_sheet()->set_sheet("1");
  v1::ListSheetClaimsResponse rows;
  EXPECT_EQ(claims_->ListSheetClaims(Context().get(), request, &rows).error_code(),
            grpc::StatusCode::NOT_FOUND);
  v1::ListSheetsResponse listed;
  ASSERT_TRUE(claims_->ListSheets(Context().get(), {}, &listed).ok());
  EXPECT_EQ(listed.rows_size(), 0);
}

}  // namespace
}  // namespace pelab
