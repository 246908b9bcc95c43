// Principals: how they begin, what their tokens are worth, and the record of what they do.
#include <SQLiteCpp/SQLiteCpp.h>

#include <vector>

#include "core/access/audit_chain.h"
#include "core/db/check/check.h"
#include "pelab/v1/claims.grpc.pb.h"
#include "server/limits.h"
#include "tests/contract/rpc/identity_fixture.h"
#include "tests/support/logged.h"

namespace pelab {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

class PrincipalsTest : public IdentityTest {
 protected:
  std::vector<v1::AuditRow> Audit(const std::string& principal = "") {
    v1::ListAuditRequest request;
    request.set_principal(principal);
    v1::ListAuditResponse response;
    EXPECT_TRUE(Call<v1::Admin>(root_, &v1::Admin::Stub::ListAudit, request, response).ok());
    return {response.rows().begin(), response.rows().end()};
  }
  std::string Rotate(const std::string& name, bool revoke = false) {
    v1::RotateTokenRequest request;
    request.set_name(name);
    request.set_revoke_previous(revoke);
    v1::PrincipalToken answer;
    EXPECT_TRUE(Call<v1::Admin>(root_, &v1::Admin::Stub::RotateToken, request, answer).ok());
    return answer.token();
  }
  static v1::Principal WhoIs(const Channel& channel) {
    v1::WhoAmIResponse response;
    EXPECT_TRUE(
        Call<v1::Admin>(channel, &v1::Admin::Stub::WhoAmI, v1::WhoAmIRequest(), response).ok());
    return response.principal();
  }
  // The problems that `pelab db check` finds in the record of acts.
  std::vector<std::string> ProblemsOfTheRecord() {
    const auto checks = db::CheckDatabase(options_.database);
    EXPECT_TRUE(checks.ok()) << checks.status();
    for (const db::Check& check : *checks) {
      if (check.name == "the record of acts is as it was written") return check.problems;
    }
    ADD_FAILURE() << "there is no such check";
    return {};
  }
};

TEST_F(PrincipalsTest, WithoutThemEverybodyMayDoEverythingAndNothingIsRecorded) {
  EXPECT_EQ(WhoIs(With("")).name(), "");
  EXPECT_TRUE(SubmitAs(With(""), Document("open")).ok());
  EXPECT_TRUE(SubmitAs(With("a-token-that-nobody-asked-for"), Document("also")).ok());
  root_ = With("");
  EXPECT_TRUE(Audit().empty());
  EXPECT_EQ(GetSweep("open").owner(), "");
}

TEST_F(PrincipalsTest, TheFirstIsAnOperator) {
  const auto submitter = Add(With(""), Request("alice", v1::ROLE_SUBMITTER));
  EXPECT_THAT(submitter, StatusIs(absl::StatusCode::kFailedPrecondition,
                                  HasSubstr("the first principal must be an operator")));
  EXPECT_TRUE(List(With("")).ok()) << "identity is still off";
  BeginIdentity();
  EXPECT_THAT(root_token_, StartsWith("pelab_"));
  EXPECT_EQ(root_token_.size(), 70u);
  EXPECT_EQ(WhoIs(root_).name(), "root");
  EXPECT_THAT(List(With("")), StatusIs(absl::StatusCode::kUnauthenticated,
                                       HasSubstr("needs a token; give --token-file")));
  Restart();
  root_ = With(root_token_);
  EXPECT_TRUE(List(root_).ok());
  EXPECT_THAT(List(With("")), StatusIs(absl::StatusCode::kUnauthenticated, testing::_));
}

TEST_F(PrincipalsTest, SomebodyCanAlwaysOperate) {
  BeginIdentity();
  EXPECT_THAT(SetDisabled("root", true),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("last operator")));
  v1::ChangePrincipalRequest demote;
  demote.set_name("root");
  demote.set_role(v1::ROLE_READER);
  EXPECT_THAT(Change(demote),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("last operator")));
  Join("second", v1::ROLE_OPERATOR);
  EXPECT_TRUE(Change(demote).ok());
  EXPECT_EQ(Change(demote).code(), absl::StatusCode::kPermissionDenied) << "root is a reader now";
}

TEST_F(PrincipalsTest, BadRequestsSayWhatIsAllowed) {
  BeginIdentity();
  const auto refusal = [this](const v1::AddPrincipalRequest& request) {
    return Add(root_, request).status();
  };
  EXPECT_THAT(refusal(Request("a b", v1::ROLE_READER)),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("\"a b\"")));
  EXPECT_THAT(refusal(Request("shared", v1::ROLE_READER)),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("coordinator's own")));
  EXPECT_THAT(refusal(Request("x", v1::ROLE_UNSPECIFIED)),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("known: reader")));
  EXPECT_THAT(refusal(Request("root", v1::ROLE_READER)),
              StatusIs(absl::StatusCode::kAlreadyExists, HasSubstr("named root")));
  v1::AddPrincipalRequest odd = Request("x", v1::ROLE_SUBMITTER);
  odd.mutable_limits()->set_max_priority(1001);
  EXPECT_THAT(refusal(odd), StatusIs(absl::StatusCode::kInvalidArgument,
                                     HasSubstr("invalid max_priority 1001; allowed: 0")));
  odd = Request("x", v1::ROLE_WORKER);
  odd.set_certificate_uri("https://x");
  EXPECT_THAT(refusal(odd), StatusIs(absl::StatusCode::kInvalidArgument,
                                     HasSubstr("allowed: pelab://worker/NAME")));
  odd = Request("x", v1::ROLE_READER);
  odd.set_expires_at_ms(1);
  EXPECT_THAT(refusal(odd),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("a time to come")));
  EXPECT_THAT(SetDisabled("nobody", true),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("no principal \"nobody\"")));
}

// Whoever reads the id of a worker in a list cannot be that worker.
TEST_F(PrincipalsTest, AWorkersIdIsItsPrincipals) {
  BeginIdentity();
  const Channel honest_channel = Join("honest", v1::ROLE_WORKER);
  const Channel thief_channel = Join("thief", v1::ROLE_WORKER);
  ASSERT_TRUE(SubmitAs(root_, Document("s", "[0]")).ok());
  FakeWorker honest(honest_channel, "worker-1", 1);
  honest.AwaitWelcome();
  const v1::Assignment assignment = honest.AwaitAssignment();
  FakeWorker thief(thief_channel, "worker-1", 1, {Holding(assignment)});
  const grpc::Status end = thief.WaitForEnd();
  EXPECT_EQ(end.error_code(), grpc::StatusCode::PERMISSION_DENIED);
  EXPECT_THAT(end.error_message(), HasSubstr("belongs to another principal"));
  // The honest one goes on as if nothing had been.
  Script script(assignment);
  honest.Send(script.Whole(3));
  EXPECT_FALSE(honest.AwaitAck(assignment.attempt_id(), script.sequence()).superseded());
  honest.Vanish();
  FakeWorker again(honest_channel, "worker-1", 1);
  again.AwaitWelcome();
}

// What a stolen token of a worker is good for: as its worker, jobs and their files; nothing else.
TEST_F(PrincipalsTest, ADisabledOneLosesItsOpenCalls) {
  BeginIdentity();
  const Channel channel = Join("gpu01", v1::ROLE_WORKER);
  const Channel watcher = Join("reader", v1::ROLE_READER);
  v1::SubmitResponse sweep;
  ASSERT_TRUE(SubmitAs(root_, Document("s"), &sweep).ok());
  FakeWorker worker(channel, "worker-1", 1);
  worker.AwaitWelcome();
  const auto stub = v1::Sweeps::NewStub(watcher);
  grpc::ClientContext context;
  v1::WatchSweepRequest request;
  request.mutable_sweep()->set_sweep(absl::StrCat(sweep.sweep_id()));
  const auto watch = stub->WatchSweep(&context, request);
  v1::SweepUpdate update;
  ASSERT_TRUE(watch->Read(&update));

  ASSERT_TRUE(SetDisabled("gpu01", true).ok());
  ASSERT_TRUE(SetDisabled("reader", true).ok());
  EXPECT_FALSE(worker.WaitForEnd().ok());
  while (watch->Read(&update)) {
  }
  EXPECT_FALSE(watch->Finish().ok());
  EXPECT_THAT(List(watcher), StatusIs(absl::StatusCode::kUnauthenticated,
                                      HasSubstr("principal reader is disabled")));
  ASSERT_TRUE(SetDisabled("reader", false).ok());
  EXPECT_TRUE(List(watcher).ok());
}

TEST_F(PrincipalsTest, ATokenBeforeRotationIsGoodForAWhile) {
  BeginIdentity();
  const Channel before = Join("alice", v1::ROLE_READER);
  const std::string second = Rotate("alice");
  EXPECT_NE(second, tokens_["alice"]);
  EXPECT_TRUE(List(before).ok()) << "for an hour";
  EXPECT_TRUE(List(With(second)).ok());
  const std::string third = Rotate("alice");
  EXPECT_THAT(List(before), StatusIs(absl::StatusCode::kUnauthenticated, testing::_))
      << "the one before the previous one";
  EXPECT_TRUE(List(With(second)).ok());
  const std::string fourth = Rotate("alice", /*revoke=*/true);
  EXPECT_THAT(List(With(third)), StatusIs(absl::StatusCode::kUnauthenticated,
                                          HasSubstr("the token of principal alice was replaced")));
  EXPECT_TRUE(List(With(fourth)).ok());
}

// A long session goes on when its token is rotated, and ends when the token is revoked.
TEST_F(PrincipalsTest, RevocationEndsSessionsThatRotationLeaves) {
  BeginIdentity();
  const Channel channel = Join("gpu01", v1::ROLE_WORKER);
  FakeWorker worker(channel, "worker-1", 1);
  worker.AwaitWelcome();
  Rotate("gpu01");
  ASSERT_TRUE(SubmitAs(root_, Document("s", "[0]")).ok());
  worker.AwaitAssignment();
  Rotate("gpu01", /*revoke=*/true);
  EXPECT_FALSE(worker.WaitForEnd().ok());
}

TEST_F(PrincipalsTest, ANewTokenInTheClientsFileNeedsNoRestart) {
  BeginIdentity();
  const Channel channel = Join("alice", v1::ROLE_READER);
  const std::string file = absl::StrCat(directory_, "/token", files_);  // that of `channel`
  ASSERT_TRUE(List(channel).ok());
  const std::string token = Rotate("alice", /*revoke=*/true);
  EXPECT_FALSE(List(channel).ok());
  ASSERT_TRUE(WriteFileAtomically(file, token).ok());
  const absl::Time deadline = absl::Now() + kPatience;
  while (!List(channel).ok() && absl::Now() < deadline) absl::SleepFor(absl::Milliseconds(50));
  EXPECT_TRUE(List(channel).ok());
}

TEST_F(PrincipalsTest, WhatPeopleDoIsRecordedInAChain) {
  BeginIdentity();
  const Channel alice = Join("alice", v1::ROLE_SUBMITTER);
  const std::string document = Document("s");
  ASSERT_TRUE(SubmitAs(alice, document).ok());
  EXPECT_FALSE(SubmitAs(alice, Document("s", "[7]")).ok()) << "the name is taken";
  v1::DrainWorkerRequest drain;
  drain.set_worker("w");
  drain.set_mode(v1::Drain::FINISH);
  v1::DrainWorkerResponse drained;
  EXPECT_EQ(Call<v1::Fleet>(alice, &v1::Fleet::Stub::DrainWorker, drain, drained).code(),
            absl::StatusCode::kPermissionDenied);
  const auto there = [&](const std::string& method, const std::string& outcome) {
    const absl::Time deadline = absl::Now() + kPatience;
    for (; absl::Now() < deadline; absl::SleepFor(absl::Milliseconds(20))) {
      for (const v1::AuditRow& row : Audit("alice")) {
        if (row.method() == method && row.outcome() == outcome) return row;
      }
    }
    ADD_FAILURE() << method << " " << outcome << " is not recorded";
    return v1::AuditRow();
  };
  EXPECT_THAT(there("Sweeps/Submit", "OK").target(),
              AllOf(HasSubstr("sweep s"), HasSubstr(Sha256Hex(document))));
  there("Sweeps/Submit", "REFUSED");
  there("Fleet/DrainWorker", "PERMISSION_DENIED");
  EXPECT_EQ(there("Sweeps/Submit", "OK").peer(), "unix:");
  std::string previous(access::kAuditStart);
  for (const v1::AuditRow& row : Audit()) {
    EXPECT_EQ(row.sha256(), access::AuditHash(previous, row));
    EXPECT_THAT(row.DebugString(), testing::Not(HasSubstr(tokens_["alice"])));
    previous = row.sha256();
  }
  EXPECT_THAT(ProblemsOfTheRecord(), testing::IsEmpty());

  coordinator_.reset();
  SQLite::Database db(options_.database, SQLite::OPEN_READWRITE);
  db.exec("UPDATE audit SET outcome = 'OK' WHERE outcome = 'PERMISSION_DENIED'");
  EXPECT_THAT(ProblemsOfTheRecord(), testing::Contains(HasSubstr("is not as it was written")));
  db.exec("DELETE FROM audit WHERE audit_id = 2");
  EXPECT_THAT(ProblemsOfTheRecord(), testing::Contains(HasSubstr("row 2 of audit is missing")));
}

// Somebody who is refused again and again fills no disk.
TEST_F(PrincipalsTest, ManyRefusalsAreCounted) {
  BeginIdentity();
  constexpr int kCalls = 300;
  coordinator_.reset();
  const std::string log = testing_support::Logged([&] {
    Start();
    const Channel nobody = With("a-token-that-nobody-gave");
    for (int i = 0; i < kCalls; ++i) EXPECT_FALSE(List(nobody).ok());
    coordinator_.reset();
  });
  EXPECT_THAT(log, HasSubstr("wrong tokens so far"));
  Start();
  const auto count = [this](std::int64_t* rows) {
    std::int64_t refused = 0;
    *rows = 0;
    for (const v1::AuditRow& row : Audit()) {
      if (row.outcome() == "OK") continue;
      refused += row.count();
      *rows += 1;
    }
    return refused;
  };
  std::int64_t rows = 0;
  const absl::Time deadline = absl::Now() + kPatience;
  while (count(&rows) < kCalls && absl::Now() < deadline) absl::SleepFor(absl::Milliseconds(50));
  EXPECT_EQ(count(&rows), kCalls);
  EXPECT_LT(rows, kCalls);
}

TEST_F(PrincipalsTest, LimitsOfASubmitterNameWhoRaisesThem) {
  BeginIdentity();
  v1::AddPrincipalRequest request = Request("alice", v1::ROLE_SUBMITTER);
  request.mutable_limits()->set_max_queued(5);
  const Channel alice = Join(request);
  ASSERT_TRUE(SubmitAs(alice, Document("four", "[0, 1]")).ok());
  const absl::Status full = SubmitAs(alice, Document("more", "[2]"));
  EXPECT_THAT(full, StatusIs(absl::StatusCode::kResourceExhausted,
                             AllOf(HasSubstr("4 jobs of alice wait"),
                                   HasSubstr("pelab admin principal change alice --max-queued"))));
  EXPECT_TRUE(SubmitAs(alice, Document("four", "[0, 1]")).ok()) << "it is there already";
  v1::ExtendRequest extend;
  extend.mutable_sweep()->set_sweep("four");
  extend.set_seeds("5..9");
  v1::ExtendResponse extended;
  EXPECT_THAT(Call<v1::Sweeps>(alice, &v1::Sweeps::Stub::Extend, extend, extended),
              StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("--max-queued")));
  EXPECT_THAT(SubmitAs(alice, Document("urgent", "[3]"), nullptr, 1),
              StatusIs(absl::StatusCode::kPermissionDenied, HasSubstr("--max-priority")));
  const Channel bob = Join("bob", v1::ROLE_SUBMITTER);
  EXPECT_THAT(SubmitAs(bob, Document("four", "[0, 1]")),
              StatusIs(absl::StatusCode::kPermissionDenied, HasSubstr("is alice's")));
}

TEST_F(PrincipalsTest, ClaimsArePutAsideByTheOwnersOfTheirSheets) {
  BeginIdentity();
  const Channel alice = Join("alice", v1::ROLE_SUBMITTER);
  v1::RegisterSheetRequest request;
  request.set_document(
      "name: mine\nsweep: sweep.yaml\nclaims:\n"
      "  - {id: a, above: {metric: test_accuracy, a: pe=rope, b: pe=nope}}\n");
  request.set_file_name("mine.yaml");
  request.set_sweep_document(Document("sweep"));
  request.set_slots(1);
  v1::Settlement settlement;
  ASSERT_THAT(Call<v1::Claims>(alice, &v1::Claims::Stub::RegisterSheet, request, settlement),
              IsOk());
  v1::AdvanceRequest aside;
  aside.mutable_sheet()->set_sheet("mine");
  aside.add_put_aside("a");
  const auto put_aside = [&](const Channel& by) {
    return Call<v1::Claims>(by, &v1::Claims::Stub::Advance, aside, settlement);
  };
  EXPECT_THAT(put_aside(Join("bob", v1::ROLE_SUBMITTER)),
              StatusIs(absl::StatusCode::kPermissionDenied,
                       HasSubstr("is alice's; bob may change only sheets of its own")));
  for (const Channel& by : {alice, root_}) {
    EXPECT_THAT(put_aside(by),
                StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("has ended yet")));
  }
}

TEST_F(PrincipalsTest, AReaderMakesOnlySoManyCalls) {
  BeginIdentity();
  const Channel reader = Join("reader", v1::ROLE_READER);
  const absl::Time begin = absl::Now();
  absl::Status status;
  int calls = 0;
  while (status.ok() && calls < 100'000) {
    status = List(reader);
    ++calls;
  }
  const double most =
      limits::kCallsAtOnce + limits::kCallsPerSecond * absl::ToDoubleSeconds(absl::Now() - begin);
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kResourceExhausted,
                               HasSubstr("reader makes more than 50 a second")));
  EXPECT_LE(calls, most + 2);
  EXPECT_TRUE(List(root_).ok()) << "others are not touched";
}

TEST_F(PrincipalsTest, AReaderHasOnlySoManyStreams) {
  BeginIdentity();
  const Channel reader = Join("reader", v1::ROLE_READER);
  v1::SubmitResponse sweep;
  ASSERT_TRUE(SubmitAs(root_, Document("s"), &sweep).ok());
  v1::WatchSweepRequest request;
  request.mutable_sweep()->set_sweep(absl::StrCat(sweep.sweep_id()));
  const auto stub = v1::Sweeps::NewStub(reader);
  std::vector<std::unique_ptr<grpc::ClientContext>> contexts;
  std::vector<std::unique_ptr<grpc::ClientReader<v1::SweepUpdate>>> watches;
  v1::SweepUpdate update;
  for (int i = 0; i < limits::kStreamsOfPrincipal; ++i) {
    contexts.push_back(std::make_unique<grpc::ClientContext>());
    watches.push_back(stub->WatchSweep(contexts.back().get(), request));
    ASSERT_TRUE(watches.back()->Read(&update)) << i;
  }
  grpc::ClientContext context;
  const auto one_more = stub->WatchSweep(&context, request);
  EXPECT_FALSE(one_more->Read(&update));
  EXPECT_THAT(rpc::FromGrpc(one_more->Finish()),
              StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("8 streams open")));
  for (const auto& each : contexts) each->TryCancel();
  for (const auto& each : watches) EXPECT_FALSE(each->Finish().ok());
}

// An attempt on a GPU is charged to whoever submitted its sweep.
TEST_F(PrincipalsTest, GpuTimeIsCharged) {
  BeginIdentity();
  const Channel alice = Join("alice", v1::ROLE_SUBMITTER);
  ASSERT_TRUE(SubmitAs(alice, Document("s", "[0]")).ok());
  FakeWorker worker(Join("gpu01", v1::ROLE_WORKER), "worker-1", 1, {}, "", 0, "cuda:0");
  worker.AwaitWelcome();
  const v1::Assignment assignment = worker.AwaitAssignment();
  EXPECT_EQ(assignment.principal(), "alice");
  absl::SleepFor(absl::Milliseconds(30));  // time that is charged
  Script script(assignment);
  worker.Send(script.Whole(3));
  worker.AwaitAck(assignment.attempt_id(), script.sequence());
  v1::ListPrincipalsResponse principals;
  ASSERT_TRUE(Call<v1::Admin>(root_, &v1::Admin::Stub::ListPrincipals, v1::ListPrincipalsRequest(),
                              principals)
                  .ok());
  for (const v1::Principal& principal : principals.principals()) {
    if (principal.name() == "alice") {
      EXPECT_GE(principal.gpu_seconds_used(), 0.03);
      EXPECT_LT(principal.gpu_seconds_used(), 60);
    } else {
      EXPECT_EQ(principal.gpu_seconds_used(), 0) << principal.name();
    }
  }
}

}  // namespace
}  // namespace pelab
