#include "worker/agent/session.h"

#include <gmock/gmock.h>
#include <google/protobuf/util/json_util.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <deque>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/support/fake_clock.h"
#include "tests/support/status_matchers.h"

namespace pelab::agent {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Records the calls instead of running attempts.
class FakeHost final : public AttemptHost {
 public:
  std::vector<v1::HeldAttempt> Held() override { return held; }
  void Disconnected() override { ++disconnects; }
  void Answer(const v1::HeldAnswer& answer) override { answers.push_back(answer.attempt_id()); }
  void Start(const v1::Assignment& assignment) override {
    started.push_back(assignment.attempt_id());
  }
  void StartPack(const v1::AssignmentPack& pack) override {
    packs.emplace_back();
    for (const v1::Assignment& one : pack.assignments()) packs.back().push_back(one.attempt_id());
  }
  void Refuse(const v1::Assignment& assignment) override {
    refused.push_back(assignment.attempt_id());
  }
  void Stop(const v1::StopAttempt& stop) override { stopped.push_back(stop.attempt_id()); }
  void Acknowledge(const v1::Ack& ack) override { acknowledged.push_back(ack.sequence()); }
  void Preempt(absl::Duration grace) override { preempt_grace = grace; }
  void SetRetryCap(absl::Duration cap) override { retry_cap = cap; }
  bool NextEvents(std::size_t, v1::EventBatch* batch) override {
    if (events == 0) return false;
    --events;
    batch->add_events();
    return true;
  }
  bool NextLog(v1::LogChunk* chunk) override {
    if (logs == 0) return false;
    --logs;
    chunk->set_data("log");
    return true;
  }
  bool Idle() override { return idle; }

  std::vector<v1::HeldAttempt> held;
  std::vector<std::int64_t> answers, started, refused, stopped;
  std::vector<std::vector<std::int64_t>> packs;
  std::vector<std::uint64_t> acknowledged;
  absl::Duration preempt_grace = absl::InfiniteDuration();  // infinite: not preempted
  absl::Duration retry_cap;
  int disconnects = 0, events = 0, logs = 0;
  bool idle = false;
};

class SessionTest : public testing::Test {
 protected:
  static WorkerIdentity Identity() {
    v1::Slot slot;
    slot.set_device("cpu");
    return {"id", "name", "host", "0.1", "{}", {slot}, 1'700'000'000'000, 120'000};
  }
  static v1::CoordinatorMessage Welcome(int heartbeat_ms = 5000, int lease_ms = 20000) {
    v1::CoordinatorMessage message;
    message.mutable_welcome()->set_protocol(2);
    message.mutable_welcome()->set_heartbeat_ms(heartbeat_ms);
    message.mutable_welcome()->set_lease_ms(lease_ms);
    return message;
  }
  void Begin() {
    session_.Connected();
    v1::WorkerMessage hello;
    ASSERT_TRUE(session_.Next(&hello));
    ASSERT_TRUE(hello.has_hello());
    ASSERT_THAT(session_.Receive(Welcome()), IsOk());
  }
  v1::WorkerMessage::MessageCase Next() {
    v1::WorkerMessage message;
    return session_.Next(&message) ? message.message_case() : v1::WorkerMessage::MESSAGE_NOT_SET;
  }

  FakeHost host_;
  FakeClock clock_;
  Session session_{Identity(), &host_, &clock_};
};

TEST_F(SessionTest, SaysHelloThenNothingBeforeTheWelcome) {
  v1::HeldAttempt held;
  held.set_attempt_id(4);
  held.set_slot(-1);
  host_.held = {held};
  host_.events = 1;
  session_.Connected();
  EXPECT_EQ(host_.disconnects, 1);
  v1::WorkerMessage message;
  ASSERT_TRUE(session_.Next(&message));
  EXPECT_EQ(message.hello().worker_id(), "id");
  EXPECT_EQ(message.hello().available_until_ms(), 1'700'000'000'000);
  EXPECT_EQ(message.hello().margin_ms(), 120'000U);
  EXPECT_EQ(message.hello().protocol(), 1) << "a coordinator of version 1 refuses all else";
  EXPECT_EQ(message.hello().protocol_max(), 2);
  EXPECT_THAT(message.hello().features(), ElementsAre("files"));
  EXPECT_EQ(message.hello().held(0).attempt_id(), 4);
  EXPECT_EQ(message.hello().held(0).slot(), -1);
  EXPECT_FALSE(session_.Next(&message));
  v1::CoordinatorMessage welcome = Welcome(1000, 8000);
  welcome.mutable_welcome()->add_held()->set_attempt_id(4);
  ASSERT_THAT(session_.Receive(welcome), IsOk());
  EXPECT_THAT(host_.answers, ElementsAre(4));
  EXPECT_EQ(host_.retry_cap, absl::Seconds(2));
  EXPECT_EQ(Next(), v1::WorkerMessage::kEvents);
}

TEST_F(SessionTest, RefusesABrokenProtocol) {
  session_.Connected();
  v1::CoordinatorMessage early;
  early.mutable_assignment();
  EXPECT_THAT(session_.Receive(early),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("before its welcome")));
  v1::CoordinatorMessage other = Welcome();
  for (const int protocol : {0, 3}) {
    other.mutable_welcome()->set_protocol(protocol);
    EXPECT_THAT(session_.Receive(other), StatusIs(absl::StatusCode::kFailedPrecondition,
                                                  HasSubstr("this worker speaks 1 to 2")));
  }
  EXPECT_THAT(session_.Receive(Welcome(0, 100)),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("every 0 ms")));
  EXPECT_THAT(session_.Receive(Welcome(100, 100)),
              StatusIs(absl::StatusCode::kInvalidArgument, testing::_));
  ASSERT_THAT(session_.Receive(Welcome()), IsOk());
  EXPECT_FALSE(session_.Receive(Welcome()).ok());
}

TEST_F(SessionTest, AnUnfitWorkerSaysSoUntilItIsToldToResume) {
  Begin();
  session_.SetUnfit("GPU cuda:0 has Xid 79");
  EXPECT_EQ(host_.preempt_grace, absl::Seconds(30));
  v1::WorkerMessage message;
  ASSERT_TRUE(session_.Next(&message)) << "at once";
  EXPECT_EQ(message.heartbeat().unfit(), "GPU cuda:0 has Xid 79");
  v1::CoordinatorMessage assignment;
  assignment.mutable_assignment()->set_attempt_id(5);
  ASSERT_THAT(session_.Receive(assignment), IsOk());
  EXPECT_THAT(host_.refused, ElementsAre(5));
  Begin();  // again, with a coordinator that has not heard of it
  ASSERT_THAT(session_.Receive(assignment), IsOk());
  EXPECT_THAT(host_.refused, ElementsAre(5, 5));
  v1::CoordinatorMessage resume;
  resume.mutable_drain()->set_mode(v1::Drain::RESUME);
  ASSERT_THAT(session_.Receive(resume), IsOk());
  clock_.Advance(absl::Seconds(5));
  ASSERT_TRUE(session_.Next(&message));
  EXPECT_EQ(message.heartbeat().unfit(), "");
  ASSERT_THAT(session_.Receive(assignment), IsOk());
  EXPECT_THAT(host_.started, ElementsAre(5));
}

// What a coordinator of the release before said to its worker (tests/contract/sessions/record.py).
TEST_F(SessionTest, UnderstandsACoordinatorOfProtocolOne) {
  std::ifstream file(PELAB_SOURCE_DIR "/tests/contract/sessions/protocol_1.jsonl");
  session_.Connected();
  for (std::string line; std::getline(file, line);) {
    const nlohmann::json recorded = nlohmann::json::parse(line);
    if (recorded.at("from") != "coordinator") continue;
    v1::CoordinatorMessage message;
    ASSERT_TRUE(
        google::protobuf::util::JsonStringToMessage(recorded.at("message").dump(), &message).ok());
    if (message.message_case() == v1::CoordinatorMessage::MESSAGE_NOT_SET) continue;  // an upload's
    ASSERT_THAT(session_.Receive(message), IsOk());
  }
  EXPECT_THAT(host_.started, ElementsAre(1, 2));
  EXPECT_THAT(host_.acknowledged, ElementsAre(1, 2, 3, 4, 5, 6, 7, 1, 2, 3, 4, 5, 7));
}

TEST_F(SessionTest, BeatsWhenDueAndBeforeEverythingElse) {
  Begin();
  EXPECT_EQ(Next(), v1::WorkerMessage::MESSAGE_NOT_SET);
  EXPECT_EQ(session_.NextTimer() - clock_.Monotonic(), absl::Seconds(5));
  clock_.Advance(absl::Seconds(5));
  host_.events = 1;
  host_.logs = 1;
  EXPECT_EQ(Next(), v1::WorkerMessage::kHeartbeat);
  EXPECT_EQ(Next(), v1::WorkerMessage::kLog);
  EXPECT_EQ(Next(), v1::WorkerMessage::kEvents);
  EXPECT_EQ(Next(), v1::WorkerMessage::MESSAGE_NOT_SET);
}

TEST_F(SessionTest, ABeatTellsHowBusyTheGpusAre) {
  Session session({.worker_id = "w"}, &host_, &clock_,
                  [](v1::Heartbeat& beat) { beat.add_loads()->set_busy_percent(87); });
  session.Connected();
  v1::WorkerMessage message;
  ASSERT_TRUE(session.Next(&message));
  ASSERT_THAT(session.Receive(Welcome()), IsOk());
  EXPECT_FALSE(session.Next(&message));
  clock_.Advance(absl::Seconds(5));
  ASSERT_TRUE(session.Next(&message));
  ASSERT_EQ(message.heartbeat().loads_size(), 1);
  EXPECT_EQ(message.heartbeat().loads(0).busy_percent(), 87);
}

TEST_F(SessionTest, TellsAtOnceThatItHoldsLess) {
  Begin();
  host_.held.resize(2);
  // More attempts: the coordinator assigned them, so it knows.
  EXPECT_EQ(Next(), v1::WorkerMessage::MESSAGE_NOT_SET);
  host_.held.resize(1);
  EXPECT_EQ(Next(), v1::WorkerMessage::kHeartbeat);
  EXPECT_EQ(Next(), v1::WorkerMessage::MESSAGE_NOT_SET);
}

TEST_F(SessionTest, HandsAPackOnWholeUnlessItDrains) {
  Begin();
  v1::CoordinatorMessage message;
  for (const std::int64_t id : {3, 4, 5}) {
    message.mutable_pack()->add_assignments()->set_attempt_id(id);
  }
  ASSERT_THAT(session_.Receive(message), IsOk());
  EXPECT_THAT(host_.packs, ElementsAre(ElementsAre(3, 4, 5)));
  EXPECT_THAT(host_.started, IsEmpty());
  v1::CoordinatorMessage drain;
  drain.mutable_drain()->set_mode(v1::Drain::FINISH);
  ASSERT_THAT(session_.Receive(drain), IsOk());
  ASSERT_THAT(session_.Receive(message), IsOk());
  EXPECT_EQ(host_.packs.size(), 1u);
  EXPECT_THAT(host_.refused, ElementsAre(3, 4, 5));
}

TEST_F(SessionTest, GivesUpAfterALeaseOfSilence) {
  Begin();
  clock_.Advance(absl::Milliseconds(19'999));
  EXPECT_FALSE(session_.Silent());
  v1::CoordinatorMessage answer;
  answer.mutable_heartbeat();
  ASSERT_THAT(session_.Receive(answer), IsOk());
  clock_.Advance(absl::Milliseconds(19'999));
  EXPECT_FALSE(session_.Silent());
  clock_.Advance(absl::Milliseconds(1));
  EXPECT_TRUE(session_.Silent());
  session_.Connected();
  EXPECT_FALSE(session_.Silent());
  EXPECT_FALSE(session_.welcomed());
}

TEST_F(SessionTest, PassesOrdersOn) {
  Begin();
  v1::CoordinatorMessage message;
  message.mutable_assignment()->set_attempt_id(1);
  ASSERT_THAT(session_.Receive(message), IsOk());
  message.mutable_stop()->set_attempt_id(1);
  ASSERT_THAT(session_.Receive(message), IsOk());
  message.mutable_acks()->add_acks()->set_sequence(8);
  message.mutable_acks()->add_acks()->set_sequence(9);
  ASSERT_THAT(session_.Receive(message), IsOk());
  EXPECT_THAT(host_.started, ElementsAre(1));
  EXPECT_THAT(host_.stopped, ElementsAre(1));
  EXPECT_THAT(host_.acknowledged, ElementsAre(8, 9));
}

TEST_F(SessionTest, DrainRefusesWhatCrossesIt) {
  Begin();
  v1::CoordinatorMessage message;
  message.mutable_drain()->set_mode(v1::Drain::FINISH);
  ASSERT_THAT(session_.Receive(message), IsOk());
  EXPECT_EQ(host_.preempt_grace, absl::InfiniteDuration());  // trainers continue
  message.mutable_assignment()->set_attempt_id(1);
  ASSERT_THAT(session_.Receive(message), IsOk());
  EXPECT_THAT(host_.started, IsEmpty());
  EXPECT_THAT(host_.refused, ElementsAre(1));
  message.mutable_drain()->set_mode(v1::Drain::CHECKPOINT);
  ASSERT_THAT(session_.Receive(message), IsOk());
  EXPECT_EQ(host_.preempt_grace, absl::Seconds(30));
  message.mutable_drain()->set_mode(v1::Drain::KILL);
  ASSERT_THAT(session_.Receive(message), IsOk());
  EXPECT_EQ(host_.preempt_grace, absl::ZeroDuration());
}

TEST_F(SessionTest, ADrainedWorkerStaysAndTakesJobsAgainWhenItIsToldTo) {
  Begin();
  v1::CoordinatorMessage drain;
  drain.mutable_drain()->set_mode(v1::Drain::CHECKPOINT);
  ASSERT_THAT(session_.Receive(drain), IsOk());
  host_.idle = true;
  EXPECT_EQ(Next(), v1::WorkerMessage::MESSAGE_NOT_SET) << "no goodbye";
  v1::CoordinatorMessage resume;
  resume.mutable_drain()->set_mode(v1::Drain::RESUME);
  ASSERT_THAT(session_.Receive(resume), IsOk());
  v1::CoordinatorMessage assignment;
  assignment.mutable_assignment()->set_attempt_id(1);
  ASSERT_THAT(session_.Receive(assignment), IsOk());
  EXPECT_THAT(host_.started, ElementsAre(1));
  // On a new connection the worker forgets a drain that was ended meanwhile.
  ASSERT_THAT(session_.Receive(drain), IsOk());
  Begin();
  assignment.mutable_assignment()->set_attempt_id(2);
  ASSERT_THAT(session_.Receive(assignment), IsOk());
  EXPECT_THAT(host_.started, ElementsAre(1, 2));
  EXPECT_THAT(host_.refused, IsEmpty());
}

TEST_F(SessionTest, GoodbyeComesLast) {
  Begin();
  host_.events = 1;
  session_.BeginGoodbye(v1::Goodbye::IDLE, /*without_waiting=*/false);
  EXPECT_EQ(Next(), v1::WorkerMessage::kEvents);
  EXPECT_EQ(Next(), v1::WorkerMessage::MESSAGE_NOT_SET);  // not acknowledged yet
  host_.idle = true;
  session_.BeginGoodbye(v1::Goodbye::STOPPED, /*without_waiting=*/false);
  v1::WorkerMessage last;
  ASSERT_TRUE(session_.Next(&last));
  EXPECT_EQ(last.goodbye().reason(), v1::Goodbye::IDLE) << "the first reason counts";
  EXPECT_TRUE(session_.said_goodbye());
  EXPECT_EQ(Next(), v1::WorkerMessage::MESSAGE_NOT_SET);
}

TEST_F(SessionTest, GoodbyeDoesNotWaitForEver) {
  Begin();
  session_.BeginGoodbye(v1::Goodbye::TIME_LIMIT, /*without_waiting=*/true);
  EXPECT_EQ(Next(), v1::WorkerMessage::kGoodbye);
}

}  // namespace
}  // namespace pelab::agent
