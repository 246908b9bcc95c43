// Principals in the store: who they are, what they are charged, and the record of what they do.
#include "core/access/audit_chain.h"
#include "server/limits.h"
#include "tests/contract/store/store_fixture.h"

namespace pelab::store {
namespace {

using testing::HasSubstr;

class PrincipalsTest : public StoreTest {
 protected:
  PrincipalStored Add(const std::string& name, v1::Role role) {
    return Do<PrincipalStored>(
        AddPrincipal{{.name = name, .role = role, .token_sha256 = "hash-of-" + name}});
  }
  // An attempt of the job on slot 0 of a GPU worker, which `payer` pays for.
  std::int64_t Start(std::int64_t job_id, std::int64_t now, const std::string& payer = "alice") {
    AddWorker();
    return Do<AttemptCreated>(CreateAttempt{.job_id = job_id,
                                            .worker_id = "w",
                                            .slot = 0,
                                            .device = "cuda:0",
                                            .token = 7,
                                            .principal = payer,
                                            .now = now})
        .assignment->attempt_id;
  }
  double End(std::int64_t attempt_id, std::int64_t now) {
    return Do<EventStored>(EndAttempt{attempt_id, state::Event::kLose, "lost", now})
        .change->gpu_seconds;
  }
  double Used() {
    return std::stod(Text("SELECT gpu_seconds_used FROM principals WHERE name='alice'"));
  }
  std::vector<ApplyResult> Apply(std::vector<Write> writes) {
    auto results = store_->Apply(writes);
    EXPECT_TRUE(results.ok()) << results.status();
    return *std::move(results);
  }
  static RecordAct Act(const std::string& target) {
    return {.at = 5, .principal = "alice", .peer = "unix:", .method = "m", .target = target};
  }
};
INSTANTIATE_TEST_SUITE_P(Backends, PrincipalsTest, testing::Bool(),
                         [](const auto& info) { return info.param ? "File" : "Memory"; });

TEST_P(PrincipalsTest, ComeBackAsTheyWereStored) {
  Principal alice{.name = "alice",
                  .role = v1::ROLE_OPERATOR,
                  .token_sha256 = "now",
                  .created_at = 1000,
                  .expires_at = 9000};
  alice.limits.set_share(2.5);
  alice.limits.set_max_slots(3);
  alice.limits.set_max_queued(400);
  alice.limits.set_gpu_seconds(1e6);
  alice.limits.set_max_priority(10);
  ASSERT_EQ(Do<PrincipalStored>(AddPrincipal{alice}).refusal, PrincipalStored::kNone);
  ASSERT_EQ(Add("gpu01", v1::ROLE_WORKER).refusal, PrincipalStored::kNone);
  const auto stored = store_->Principals();
  ASSERT_TRUE(stored.ok()) << stored.status();
  ASSERT_EQ(stored->size(), 2u);
  EXPECT_EQ(stored->front().name, "alice");
  EXPECT_EQ(stored->front().role, v1::ROLE_OPERATOR);
  EXPECT_EQ(stored->front().token_sha256, "now");
  EXPECT_EQ(stored->front().expires_at, 9000);
  EXPECT_EQ(stored->front().limits.ShortDebugString(), alice.limits.ShortDebugString());
  EXPECT_EQ(stored->back().role, v1::ROLE_WORKER);
}

TEST_P(PrincipalsTest, AnAttemptOnAGpuIsCharged) {
  Add("alice", v1::ROLE_OPERATOR);
  Submit("s", {Cell(0, "a"), Cell(1, "b"), Cell(2, "c")});
  EXPECT_DOUBLE_EQ(End(Start(1, 10'000), 25'000), 15);
  EXPECT_DOUBLE_EQ(Used(), 15);
  // Two that one trainer ran together: each pays for its half of the slot's time.
  const std::int64_t first = Start(2, 30'000);
  const std::int64_t second = Start(3, 30'000);
  EXPECT_DOUBLE_EQ(End(first, 40'000), 5);
  EXPECT_DOUBLE_EQ(End(second, 50'000), 10);
  EXPECT_DOUBLE_EQ(Used(), 30);
}

TEST_P(PrincipalsTest, ProcessorsAndNobodysAttemptsAreFree) {
  Add("alice", v1::ROLE_OPERATOR);
  Submit("s", {Cell(0, "a"), Cell(1, "b")});
  Attempt attempt = Assign(1);  // on a processor, for nobody
  EXPECT_EQ(End(attempt.id, 1'000'000), 0);
  EXPECT_DOUBLE_EQ(End(Start(2, 10'000, ""), 25'000), 15) << "a GPU's time is counted all the same";
  EXPECT_EQ(Used(), 0);
}

TEST_P(PrincipalsTest, ARecordSaysWhetherTheWriteBeforeItWasRefused) {
  const auto results = Apply({AddPrincipal{{.name = "a", .role = v1::ROLE_READER}}, Act("first"),
                              AddPrincipal{{.name = "b", .role = v1::ROLE_OPERATOR}}, Act("second"),
                              RecordAct{.at = 6, .outcome = "UNAUTHENTICATED"}});
  for (const ApplyResult& result : results) EXPECT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(Text("SELECT outcome FROM audit ORDER BY audit_id"), "REFUSED OK UNAUTHENTICATED");
  EXPECT_EQ(Text("SELECT group_concat(name) FROM principals"), "b");
}

// Neither is stored without the other, and a write that fails takes no other with it.
TEST_P(PrincipalsTest, AWriteThatFailsLeavesNoRecord) {
  store_->database().connection().exec(
      "CREATE TRIGGER fails BEFORE INSERT ON principals WHEN NEW.name = 'bad' "
      "BEGIN SELECT RAISE(ABORT, 'no'); END");
  const auto results =
      Apply({AddPrincipal{{.name = "good", .role = v1::ROLE_OPERATOR}}, Act("good"),
             AddPrincipal{{.name = "bad", .role = v1::ROLE_OPERATOR}}, Act("bad"),
             AddPrincipal{{.name = "fine", .role = v1::ROLE_READER}}, Act("fine")});
  ASSERT_EQ(results.size(), 6u);
  for (std::size_t i = 0; i < results.size(); ++i) {
    EXPECT_EQ(results[i].ok(), i != 2 && i != 3) << i << ": " << results[i].status();
  }
  EXPECT_EQ(Text("SELECT target FROM audit ORDER BY audit_id"), "good fine");
  EXPECT_EQ(Text("SELECT group_concat(name) FROM (SELECT name FROM principals ORDER BY name)"),
            "fine,good");
  EXPECT_EQ(Text("SELECT group_concat(audit_id) FROM audit"), "1,2") << "the chain has no hole";
}

TEST_P(PrincipalsTest, LongTextsOfARecordAreCut) {
  RecordAct act = Act(std::string(100'000, 'x'));
  act.peer = "\xff\n";
  Do<Nothing>(act);
  EXPECT_LE(std::stoi(Text("SELECT length(target) FROM audit")), 600);
  EXPECT_EQ(Text("SELECT peer FROM audit"), "?\n");
}

TEST_P(PrincipalsTest, AWorkersIdIsThatOfWhoeverHadItFirst) {
  const auto hello = [this](const std::string& principal) {
    return Do<WorkerStored>(WorkerHello{.worker_id = "w",
                                        .host = "h",
                                        .version = "1",
                                        .slots_json = "[]",
                                        .slots = 1,
                                        .capabilities_json = "{}",
                                        .principal = principal,
                                        .now = 1000})
        .refused;
  };
  EXPECT_EQ(hello(""), "") << "before there were principals";
  EXPECT_EQ(hello("gpu01"), "");
  EXPECT_THAT(hello("thief"), HasSubstr("worker w belongs to another principal"));
  EXPECT_EQ(hello("gpu01"), "");
  EXPECT_EQ(hello(""), "") << "a coordinator that admits everybody";
  EXPECT_THAT(hello("thief"), HasSubstr("worker w belongs to another principal"));
}

TEST_P(PrincipalsTest, WorkersThatNeverCameBackMakeRoom) {
  Submit("s", {Cell(0, "a")});
  Attempt attempt = Assign(1);
  End(attempt.id, 3000);
  store_->database().connection().exec(absl::StrCat(
      "UPDATE workers SET state = 'offline', last_seen_at = 0;"
      "INSERT INTO workers (worker_id, host, version, slots_json, slots, capabilities_json, state, "
      "last_seen_at) WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ",
      limits::kWorkers - 1,
      ") SELECT 'made-up-' || i, 'h', '1', '[]', 1, '{}', iif(i = 7, 'online', 'offline'), i FROM "
      "n"));
  AddWorker("new");
  EXPECT_EQ(Text("SELECT count(*) FROM workers"), absl::StrCat(limits::kWorkers - 100 + 1));
  EXPECT_EQ(Text("SELECT group_concat(worker_id) FROM (SELECT worker_id FROM workers "
                 "WHERE last_seen_at < 103 ORDER BY last_seen_at, worker_id)"),
            "w,made-up-7,made-up-102")
      << "the one with an attempt, the one that is there, and the first that was not too old";
  AddWorker("another");
  EXPECT_EQ(Text("SELECT count(*) FROM workers"), absl::StrCat(limits::kWorkers - 100 + 2));
}

TEST_P(PrincipalsTest, TheOwnerOfASweepIsKnownAfterARestart) {
  SubmitSweep write{.name = "s",
                    .protocol = "clean",
                    .document = "doc",
                    .file_name = "f",
                    .overrides_json = "[]",
                    .client_token = "t",
                    .analyses_json = "[]",
                    .resources_json = "{}",
                    .owner = "alice",
                    .cells = 1,
                    .now = 1};
  const auto stored = Do<SweepStored>(write);
  std::string owner;
  ASSERT_TRUE(store_
                  ->Recover([&](const auto& sweep) { owner = sweep.settings.owner; }, [](auto) {},
                            [](auto) {}, [](auto) {})
                  .ok());
  EXPECT_EQ(owner, "alice");
  write.client_token = "u";
  write.owner = "bob";
  write.go_on = true;
  write.any_owner = false;
  const auto foreign = Do<SweepStored>(write);
  EXPECT_EQ(foreign.refusal, SweepStored::kForeign);
  EXPECT_EQ(foreign.sweep_id, stored.sweep_id);
}

}  // namespace
}  // namespace pelab::store
