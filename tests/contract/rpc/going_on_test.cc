// Submitting a sweep again; names, notes and deleting, over RPC.
#include <gmock/gmock.h>

#include <filesystem>

#include "core/db/check/check.h"
#include "core/rpc/status.h"
#include "tests/contract/rpc/coordinator_fixture.h"

namespace pelab {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class GoingOnTest : public CoordinatorTest {
 protected:
  grpc::Status Ask(const std::string& document, const std::string& token,
                   v1::SubmitResponse* response, bool new_sweep = false) {
    v1::SubmitRequest request;
    request.set_document(document);
    request.set_client_token(token);
    request.set_new_sweep(new_sweep);
    return sweeps_->Submit(Context().get(), request, response);
  }
  void Cancel(const std::string& sweep) {
    v1::CancelRequest request;
    request.mutable_sweep()->set_sweep(sweep);
    v1::CancelResponse response;
    ASSERT_TRUE(sweeps_->Cancel(Context().get(), request, &response).ok());
  }
  grpc::Status Rename(const std::string& sweep, const std::string& name) {
    v1::RenameRequest request;
    request.mutable_sweep()->set_sweep(sweep);
    request.set_name(name);
    v1::SweepControl control;
    return sweeps_->Rename(Context().get(), request, &control);
  }
  grpc::Status Delete(const std::string& sweep, v1::DeleteResponse* response,
                      bool dry_run = false) {
    v1::DeleteRequest request;
    request.mutable_sweep()->set_sweep(sweep);
    request.set_dry_run(dry_run);
    return sweeps_->Delete(Context().get(), request, response);
  }
  int Sweeps() {
    v1::ListSweepsResponse sweeps;
    EXPECT_TRUE(sweeps_->ListSweeps(Context().get(), {}, &sweeps).ok());
    return sweeps.sweeps_size();
  }
  static bool Finished(const v1::Sweep& sweep) { return sweep.state() == v1::SWEEP_STATE_FINISHED; }
};

TEST_F(GoingOnTest, TheSameDocumentGoesOnAndAnotherIsRefusedWithWhatToDo) {
  Submit(Document("s", "[0]"), "a");
  v1::SubmitResponse again;
  ASSERT_TRUE(Ask(Document("s", "[0]"), "b", &again).ok());
  EXPECT_TRUE(again.went_on());
  EXPECT_FALSE(again.reopened());
  EXPECT_EQ(again.sweep_id(), 1);
  EXPECT_EQ(Sweeps(), 1);
  v1::SubmitResponse none;
  const grpc::Status seeds = Ask(Document("s", "[0, 1]"), "c", &none);
  EXPECT_EQ(seeds.error_code(), grpc::StatusCode::ALREADY_EXISTS);
  EXPECT_THAT(seeds.error_message(), AllOf(HasSubstr("sweep 1 (s)"), HasSubstr("pelab extend 1"),
                                           HasSubstr("--name NAME"), HasSubstr("--new")));
  const grpc::Status epochs = Ask(Document("s", "[0]", 9), "d", &none);
  EXPECT_EQ(epochs.error_code(), grpc::StatusCode::ALREADY_EXISTS);
  EXPECT_THAT(epochs.error_message(), testing::Not(HasSubstr("pelab extend")));
  ASSERT_TRUE(Ask(Document("s", "[0, 1]"), "e", &none, /*new_sweep=*/true).ok());
  EXPECT_FALSE(none.went_on());
  EXPECT_EQ(Sweeps(), 2);
}

TEST_F(GoingOnTest, ATokenOfAnotherDocumentIsRefused) {
  Submit(Document("s"), "t");
  v1::SubmitResponse response;
  const grpc::Status status = Ask(Document("other"), "t", &response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::ALREADY_EXISTS);
  EXPECT_THAT(status.error_message(), AllOf(HasSubstr("client_token \"t\""), HasSubstr("sweep 1")));
  EXPECT_EQ(Sweeps(), 1);
  v1::SubmitResponse again = Submit(Document("s"), "t");
  EXPECT_TRUE(again.repeated_token());
}

TEST_F(GoingOnTest, ACancelledSweepGoesOnWithTheSeedsThatWereAddedToIt) {
  Submit(Document("s", "[0]"), "a");
  v1::ExtendRequest extend;
  extend.mutable_sweep()->set_sweep("s");
  extend.set_seeds("7");
  v1::ExtendResponse extended;
  ASSERT_TRUE(sweeps_->Extend(Context().get(), extend, &extended).ok());
  Cancel("s");
  EXPECT_EQ(GetSweep("s").jobs().cancelled(), 4u);
  v1::SubmitResponse again;
  ASSERT_TRUE(Ask(Document("s", "[0]"), "b", &again).ok());
  EXPECT_TRUE(again.went_on() && again.reopened());
  EXPECT_EQ(again.sweep_id(), 1);
  EXPECT_EQ(again.counts().new_jobs(), 4u);
  FakeWorker worker(channel_, "w1", 4);
  for (int i = 0; i < 4; ++i) {
    Script script(worker.AwaitAssignment());
    worker.Send(script.Whole(3));
    worker.AwaitAck(script.assignment().attempt_id(), script.sequence());
  }
  const v1::Sweep end = AwaitSweep("s", Finished);
  EXPECT_EQ(end.jobs().succeeded(), 4u);
  EXPECT_EQ(end.extensions_size(), 1);
  EXPECT_EQ(Sweeps(), 1);
}

TEST_F(GoingOnTest, NamesThatAreNumbersAreRefused) {
  v1::SubmitResponse response;
  const grpc::Status submitted = Ask(Document("2"), "a", &response);
  EXPECT_EQ(submitted.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  const auto violations = rpc::GetViolations(rpc::FromGrpc(submitted));
  ASSERT_TRUE(violations.has_value());
  EXPECT_EQ(violations->violations(0).line(), 1);
  EXPECT_EQ(violations->violations(0).column(), 7);
  Submit(Document("s"), "b");
  EXPECT_THAT(Rename("s", "2").error_message(), HasSubstr("must not be a number"));
  EXPECT_EQ(Rename("s", "a b").error_code(), grpc::StatusCode::INVALID_ARGUMENT);
}

TEST_F(GoingOnTest, NamesAndNotesAreKept) {
  Submit(Document("s"), "a");
  Submit(Document("t"), "b");
  EXPECT_EQ(Rename("s", "t").error_code(), grpc::StatusCode::ALREADY_EXISTS);
  ASSERT_TRUE(Rename("s", "u").ok());
  v1::SetNoteRequest note;
  note.mutable_sweep()->set_sweep("u");
  note.set_note("figure 4");
  v1::SweepControl control;
  ASSERT_TRUE(sweeps_->SetNote(Context().get(), note, &control).ok());
  EXPECT_TRUE(control.changed());
  Restart();
  EXPECT_EQ(GetSweep("u").sweep_id(), 1);
  EXPECT_EQ(GetSweep("u").note(), "figure 4");
  note.set_note(std::string(4097, 'x'));
  EXPECT_EQ(sweeps_->SetNote(Context().get(), note, &control).error_code(),
            grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(Rename("nobody", "v").error_code(), grpc::StatusCode::NOT_FOUND);
}

TEST_F(GoingOnTest, ADeletedSweepIsGoneWithItsOwnJobsAlone) {
  Submit(Document("s", "[0, 1]"), "a");
  v1::DeleteResponse deleted;
  const grpc::Status live = Delete("s", &deleted);
  EXPECT_EQ(live.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_THAT(live.error_message(), HasSubstr("pelab cancel 1"));
  FakeWorker worker(channel_, "w1", 1);
  for (int i = 0; i < 4; ++i) {
    Script script(worker.AwaitAssignment());
    worker.Send(script.Whole(3));
    worker.AwaitAck(script.assignment().attempt_id(), script.sequence());
  }
  AwaitSweep("s", Finished);
  Submit(Document("t", "[1]"), "b");
  deleted.Clear();
  ASSERT_TRUE(Delete("s", &deleted, /*dry_run=*/true).ok());
  EXPECT_EQ(deleted.jobs_deleted(), 2u);
  EXPECT_EQ(deleted.jobs_kept(), 2u);
  EXPECT_EQ(Sweeps(), 2);
  deleted.Clear();
  ASSERT_TRUE(Delete("s", &deleted).ok());
  EXPECT_EQ(deleted.jobs_deleted(), 2u);
  EXPECT_EQ(deleted.jobs_kept(), 2u);
  EXPECT_FALSE(deleted.more());
  EXPECT_EQ(Sweeps(), 1);
  EXPECT_EQ(Delete("s", &deleted).error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_EQ(Jobs("t").jobs_size(), 2);
  Restart();
  EXPECT_EQ(Sweeps(), 1);
  const auto checks = db::CheckDatabase(options_.database);
  ASSERT_TRUE(checks.ok()) << checks.status();
  for (const db::Check& check : *checks) {
    EXPECT_TRUE(check.problems.empty()) << check.name << ": " << check.problems.front();
  }
  // Its jobs are trained again if another submission wants them.
  EXPECT_EQ(Submit(Document("s", "[0, 1]"), "c").counts().new_jobs(), 2u);
}

TEST_F(GoingOnTest, WhatRunsIsStoppedBeforeItIsDeleted) {
  Submit(Document("s", "[0]"), "a");
  FakeWorker worker(channel_, "w1", 2);
  Script first(worker.AwaitAssignment());
  Script second(worker.AwaitAssignment());
  worker.Send({first.Started(0, 3), first.Epoch(0)});
  worker.AwaitAck(first.assignment().attempt_id(), 2);
  Cancel("s");
  worker.AwaitStop();
  worker.AwaitStop();
  std::thread stopping([&] {
    worker.Send({first.Finished(v1::ATTEMPT_OUTCOME_CANCELLED)});
    worker.Send({second.Finished(v1::ATTEMPT_OUTCOME_CANCELLED)});
  });
  v1::DeleteResponse deleted;
  ASSERT_TRUE(Delete("s", &deleted).ok());
  stopping.join();
  EXPECT_EQ(deleted.jobs_deleted(), 2u);
  EXPECT_FALSE(deleted.more());
  // The slots are free again.
  Submit(Document("t", "[3]"), "b");
  EXPECT_EQ(worker.AwaitAssignment().seed(), 3);
}

}  // namespace
}  // namespace pelab
