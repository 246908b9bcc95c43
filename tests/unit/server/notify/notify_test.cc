// Addresses, messages and the outbox of notifications.
#include <gmock/gmock.h>

#include <string>

#include "core/base/json_text.h"
#include "server/notify/address.h"
#include "server/notify/messages.h"
#include "server/notify/outbox.h"
#include "tests/support/fake_clock.h"

namespace pelab::notify {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(AddressTest, ReadsAddresses) {
  struct Row {
    std::string url;
    std::string host;
    std::string path;
  };
  for (const Row& row :
       {Row{"http://localhost", "http://localhost", "/"},
        Row{"https://a.example:8443/hook?x=1", "https://a.example:8443", "/hook?x=1"},
        Row{"http://10.0.0.1:80?x", "http://10.0.0.1:80", "/?x"},
        Row{"http://[::1]:8080/a:b", "http://[::1]:8080", "/a:b"}}) {
    const auto address = ParseAddress(row.url);
    ASSERT_TRUE(address.ok()) << address.status();
    EXPECT_EQ(address->host, row.host);
    EXPECT_EQ(address->path, row.path);
  }
}

TEST(AddressTest, RefusesOthersWithoutSayingTheirPath) {
  for (const std::string url :
       {"", "localhost:80/secret", "ftp://a/secret", "http://", "http:///secret",
        "http://a:0/secret", "http://a:65536/secret", "http://a:b/secret", "http://a b/secret",
        "http://a/secret\r\nX: y", "http://u:p@a/secret", "http://a/secret#b", "http://[::1/secret",
        "HTTP://a/secret", "http://a/secr\xc3\xa9t"}) {
    const auto address = ParseAddress(url);
    ASSERT_FALSE(address.ok()) << url;
    const std::string message(address.status().message());
    EXPECT_THAT(message, HasSubstr("invalid --notify: "));
    EXPECT_THAT(message, HasSubstr("; allowed: an address such as https://HOST/PATH"));
    EXPECT_THAT(message, Not(HasSubstr("secret/")));
    EXPECT_THAT(message, Not(HasSubstr("/secret")));
  }
}

// RFC 4231, test case 2.
TEST(SignatureTest, IsHmacSha256) {
  EXPECT_EQ(Signature("Jefe", "what do ya want for nothing?"),
            "sha256=5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
}

v1::Sweep MakeSweep(int succeeded, int failed, v1::SweepState state) {
  v1::Sweep sweep;
  sweep.set_sweep_id(7);
  sweep.set_name("table \"1\"");
  sweep.set_owner("ada");
  sweep.set_trace_id("0af7651916cd43dd8448eb211c80319c");
  sweep.set_state(state);
  sweep.mutable_jobs()->set_succeeded(succeeded);
  sweep.mutable_jobs()->set_failed(failed);
  return sweep;
}

TEST(MessagesTest, SayHowASweepEnded) {
  const absl::Time at = absl::FromUnixMillis(1'700'000'000'123);
  const Message done = SweepEnded(MakeSweep(4, 0, v1::SWEEP_STATE_FINISHED), at);
  const nlohmann::json json = ParseJson(done.body);
  EXPECT_EQ(json["id"], done.id);
  EXPECT_EQ(json["event"], "sweep_done");
  EXPECT_EQ(json["at_ms"], 1'700'000'000'123);
  EXPECT_EQ(json["sweep"], "table \"1\"");
  EXPECT_EQ(json["sweep_id"], 7);
  EXPECT_EQ(json["owner"], "ada");
  EXPECT_EQ(json["trace_id"], "0af7651916cd43dd8448eb211c80319c");
  EXPECT_EQ(json["counts"]["succeeded"], 4);
  EXPECT_EQ(json["counts"]["failed"], 0);
  EXPECT_EQ(json["text"], "Sweep table \"1\" (7) is done: 4 succeeded");
  const auto event = [&](int failed, v1::SweepState state) {
    return ParseJson(SweepEnded(MakeSweep(1, failed, state), at).body)["event"];
  };
  EXPECT_EQ(event(2, v1::SWEEP_STATE_FINISHED), "sweep_failed");
  EXPECT_EQ(event(2, v1::SWEEP_STATE_CANCELLED), "sweep_cancelled");
}

TEST(MessagesTest, SayWhyAJobFailed) {
  v1::JobRow job;
  job.set_job_id(3);
  job.set_pe_label("rope");
  job.set_task("distance");
  job.set_seed(5);
  job.set_error("the loss is not finite");
  const Message message =
      JobFailed(MakeSweep(0, 1, v1::SWEEP_STATE_ACTIVE), job, absl::UnixEpoch());
  const nlohmann::json json = ParseJson(message.body);
  EXPECT_EQ(json["event"], "job_failed");
  EXPECT_EQ(json["job_id"], 3);
  EXPECT_EQ(json["error"], "the loss is not finite");
  EXPECT_EQ(json["text"],
            "Sweep table \"1\" (7): the first job has failed, rope distance seed 5: "
            "the loss is not finite");
}

TEST(MessagesTest, SayWhichWorkerIsInQuarantine) {
  const Message message = WorkerQuarantined(
      {.worker = "gpu7", .worker_id = "id", .length = absl::Minutes(10)}, absl::UnixEpoch());
  const nlohmann::json json = ParseJson(message.body);
  EXPECT_EQ(json["event"], "worker_quarantined");
  EXPECT_EQ(json["worker"], "gpu7");
  EXPECT_EQ(json["seconds"], 600);
}

TEST(MessagesTest, SayWhoHasUsedTheGpuSeconds) {
  const Message message = GpuSecondsSpent({.principal = "ada", .used = 3600.5, .budget = 3600},
                                          absl::FromUnixMillis(1'700'000'000'123));
  const nlohmann::json json = ParseJson(message.body);
  EXPECT_EQ(json["event"], "gpu_budget");
  EXPECT_EQ(json["id"], message.id);
  EXPECT_EQ(json["at_ms"], 1'700'000'000'123);
  EXPECT_EQ(json["principal"], "ada");
  EXPECT_EQ(json["gpu_seconds"], 3600.5);
  EXPECT_EQ(json["budget"], 3600);
  EXPECT_EQ(json["text"], "ada has used its 3600 GPU seconds: none of its jobs starts any more");
  EXPECT_EQ(message.what, "gpu_budget of ada");
}

TEST(MessagesTest, SayWhichBudgetIsSpent) {
  const SpentBudget budget{.sheet = "table-1",
                           .sheet_id = 3,
                           .owner = "ada",
                           .rounds = 2,
                           .decided = 4,
                           .open = 5,
                           .given_up = 1,
                           .stopped_by = "--budget 1h: 58m were spent"};
  const nlohmann::json before = ParseJson(BudgetSpent(budget, nullptr, absl::UnixEpoch()).body);
  EXPECT_EQ(before["event"], "budget");
  EXPECT_EQ(before["sheet"], "table-1");
  EXPECT_EQ(before["sheet_id"], 3);
  EXPECT_EQ(before["owner"], "ada");
  EXPECT_EQ(before["rounds"], 2);
  EXPECT_EQ(before["claims"], ParseJson(R"({"decided": 4, "open": 5, "given_up": 1})"));
  EXPECT_EQ(before["stopped_by"], "--budget 1h: 58m were spent");
  EXPECT_EQ(before["text"],
            "Sheet table-1 (3) has claims left: 4 decided, 5 open, 1 given up. Stopped by --budget "
            "1h: 58m were spent");
  EXPECT_FALSE(before.contains("sweep"));
  const v1::Sweep sweep = MakeSweep(4, 0, v1::SWEEP_STATE_FINISHED);
  const nlohmann::json json = ParseJson(BudgetSpent(budget, &sweep, absl::UnixEpoch()).body);
  EXPECT_EQ(json["sweep_id"], 7);
  EXPECT_EQ(json["counts"]["succeeded"], 4);
  EXPECT_EQ(json["sheet_id"], 3);
}

class OutboxTest : public testing::Test {
 protected:
  FakeClock clock_;
  Outbox outbox_{clock_, [] { return 0.0; }};  // pauses are half of their length
};

TEST_F(OutboxTest, GivesUpAfterFiveTries) {
  EXPECT_EQ(outbox_.Wait(), absl::InfiniteDuration());
  outbox_.Add({.id = "a"});
  outbox_.Add({.id = "b"});
  EXPECT_EQ(outbox_.Wait(), absl::ZeroDuration());
  for (const int seconds : {1, 2, 4, 8}) {
    EXPECT_EQ(outbox_.First().id, "a");
    EXPECT_TRUE(outbox_.Failed());
    EXPECT_EQ(outbox_.Wait(), absl::Seconds(seconds));
    clock_.Advance(absl::Seconds(seconds));
    EXPECT_EQ(outbox_.Wait(), absl::ZeroDuration());
  }
  EXPECT_FALSE(outbox_.Failed());
  EXPECT_EQ(outbox_.First().id, "b");
  EXPECT_EQ(outbox_.Wait(), absl::ZeroDuration());
  EXPECT_EQ(outbox_.tries(), 0);
}

TEST_F(OutboxTest, EachMessageHasItsOwnTries) {
  outbox_.Add({.id = "a"});
  outbox_.Add({.id = "b"});
  outbox_.Failed();
  outbox_.Failed();
  outbox_.Delivered();
  EXPECT_EQ(outbox_.First().id, "b");
  EXPECT_TRUE(outbox_.Failed());
  EXPECT_EQ(outbox_.Wait(), absl::Seconds(1)) << "the pauses begin anew";
}

TEST_F(OutboxTest, DropsWhatIsTooMuch) {
  for (std::size_t i = 0; i < kMostWaiting; ++i) EXPECT_TRUE(outbox_.Add({}));
  EXPECT_FALSE(outbox_.Add({}));
  outbox_.Delivered();
  EXPECT_TRUE(outbox_.Add({}));
}

}  // namespace
}  // namespace pelab::notify
