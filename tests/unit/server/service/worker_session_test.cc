// A worker's session on a real scheduler and store, apart from the transport.
#include "server/service/worker_session.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <deque>
#include <memory>
#include <utility>
#include <vector>

#include "server/limits.h"
#include "tests/unit/server/sched/scheduler_fixture.h"

namespace pelab::service {
namespace {

using testing::HasSubstr;

// Counts what the session asks of its transport.
class TestSession : public WorkerSession {
 public:
  explicit TestSession(FleetContext& context) : WorkerSession(context) {}
  using WorkerSession::Ended;
  using WorkerSession::Handle;
  void Close(const absl::Status& status) override { closed = status; }

  std::vector<v1::CoordinatorMessage> sent;
  int read_ons = 0;
  absl::Status closed;

 protected:
  void Send(v1::CoordinatorMessage message) override { sent.push_back(std::move(message)); }
  void ReadOn() override { ++read_ons; }
};

// Takes nothing while it is `full`. While it is `slow`, it takes everything and stores nothing.
struct FullJournal : store::Journal {
  explicit FullJournal(store::Journal& of) : of(of) {}
  absl::Status Append(std::vector<store::Write> writes, Done done, Urgency urgency) override {
    if (!full.ok()) return full;
    if (slow) {
      kept.push_back({std::move(writes), std::move(done)});
      return absl::OkStatus();
    }
    return of.Append(std::move(writes), std::move(done), urgency);
  }
  void StoreOne() {
    auto [writes, done] = std::move(kept.front());
    kept.pop_front();
    EXPECT_TRUE(of.Append(std::move(writes), std::move(done), Urgency::kBounded).ok());
  }
  store::Journal& of;
  absl::Status full;
  bool slow = false;
  std::deque<std::pair<std::vector<store::Write>, Done>> kept;
};

class WorkerSessionTest : public sched::SchedulerTest {
 protected:
  static v1::WorkerMessage Hello(int held = 0) {
    v1::WorkerMessage message;
    v1::Hello* hello = message.mutable_hello();
    hello->set_protocol(1);
    hello->set_worker_id("w");
    hello->set_host("h");
    hello->set_version("1");
    v1::Slot* slot = hello->add_slots();
    slot->set_device("cpu");
    slot->set_device_kind("cpu");
    for (int i = 0; i < held; ++i) hello->add_held()->set_attempt_id(i + 1);
    return message;
  }
  static v1::WorkerMessage Heartbeat(int held) {
    v1::WorkerMessage message;
    message.mutable_heartbeat()->set_sequence(1);
    for (int i = 0; i < held; ++i) message.mutable_heartbeat()->add_held()->set_attempt_id(i + 1);
    return message;
  }
  std::shared_ptr<TestSession> Connected() {
    auto session = std::make_shared<TestSession>(context_);
    v1::WorkerMessage hello = Hello();
    EXPECT_TRUE(session->Handle(std::make_shared<v1::WorkerMessage>(hello)));
    world_.Settle();
    EXPECT_TRUE(session->sent.at(0).has_welcome());
    return session;
  }

  FullJournal journal_{world_};
  FleetContext context_{world_,
                        world_,
                        *scheduler_,
                        journal_,
                        absl::Seconds(5),
                        absl::Seconds(20),
                        [] { return 0.5; }};
};

TEST_F(WorkerSessionTest, AHeartbeatIsReadOnlyWhenTheOneBeforeIsDone) {
  const auto session = Connected();
  v1::WorkerMessage beat = Heartbeat(100'000);
  EXPECT_FALSE(session->Handle(std::make_shared<v1::WorkerMessage>(beat)))
      << "otherwise a flood would fill the scheduler's queue";
  EXPECT_EQ(session->read_ons, 0);
  EXPECT_EQ(world_.steps.size(), 1u);
  EXPECT_TRUE(session->sent.back().has_heartbeat()) << "answered at once";
  world_.Settle();
  EXPECT_EQ(session->read_ons, 1);
  EXPECT_TRUE(session->closed.ok());
}

// Prometheus refuses a scrape in which two samples have the same labels.
TEST_F(WorkerSessionTest, EachGpuAndEachErrorCountsOnce) {
  const auto session = Connected();
  v1::WorkerMessage beat = Heartbeat(0);
  for (const double joules : {12.5, 99.0}) {
    v1::DeviceLoad& load = *beat.mutable_heartbeat()->add_loads();
    load.set_device("cuda:0");
    load.set_energy_joules(joules);
  }
  v1::DeviceLoad& broken = *beat.mutable_heartbeat()->add_loads();
  broken.set_device("cuda:1");
  broken.set_energy_joules(std::nan(""));
  for (const int xid : {31, 79, 31}) {
    v1::GpuErrors& errors = *beat.mutable_heartbeat()->add_gpu_errors();
    errors.set_device("cuda:0");
    errors.set_xid(xid);
    errors.set_times(beat.heartbeat().gpu_errors_size());
  }
  session->Handle(std::make_shared<v1::WorkerMessage>(beat));
  world_.Settle();
  const sched::SchedulerFigures figures = scheduler_->Figures();
  ASSERT_EQ(figures.workers.size(), 1u);
  const auto& worker = figures.workers[0];
  ASSERT_EQ(worker.loads.size(), 2u);
  EXPECT_EQ(worker.loads[0].energy_joules, 12.5);
  EXPECT_EQ(worker.loads[1].energy_joules, std::nullopt);
  ASSERT_EQ(worker.errors.size(), 2u);
  EXPECT_EQ(worker.errors[0].xid, 31u);
  EXPECT_EQ(worker.errors[0].times, 1u);
  EXPECT_EQ(worker.errors[1].xid, 79u);
}

TEST_F(WorkerSessionTest, NoWorkerHasManySeries) {
  const auto session = Connected();
  v1::WorkerMessage beat = Heartbeat(0);
  for (int i = 0; i < 1000; ++i) {
    beat.mutable_heartbeat()->add_gpu_errors()->set_xid(i);
    beat.mutable_heartbeat()->add_loads()->set_device(absl::StrCat("cuda:", i));
  }
  session->Handle(std::make_shared<v1::WorkerMessage>(beat));
  world_.Settle();
  const auto worker = scheduler_->Figures().workers.at(0);
  EXPECT_EQ(worker.errors.size(), limits::kErrorsOfWorker);
  EXPECT_EQ(worker.loads.size(), limits::kLoadsOfWorker);
  // Nor has it others later.
  v1::WorkerMessage later = Heartbeat(0);
  for (int i = 500; i < 510; ++i) {
    later.mutable_heartbeat()->add_gpu_errors()->set_xid(i);
    later.mutable_heartbeat()->add_loads()->set_device(absl::StrCat("cuda:", i));
  }
  later.mutable_heartbeat()->add_loads()->set_device("cuda:3");
  session->Handle(std::make_shared<v1::WorkerMessage>(later));
  world_.Settle();
  const auto then = scheduler_->Figures().workers.at(0);
  EXPECT_TRUE(then.errors.empty());
  ASSERT_EQ(then.loads.size(), 1u);
  EXPECT_EQ(then.loads[0].device, "cuda:3");
  session->Ended();
  world_.Settle();
  EXPECT_TRUE(scheduler_->Figures().workers.empty());
}

TEST_F(WorkerSessionTest, NobodyHoldsMoreAttemptsThanAWorkerCanRun) {
  v1::WorkerMessage most = Heartbeat(limits::kHeldOfWorker);
  v1::WorkerMessage more = Heartbeat(limits::kHeldOfWorker + 1);
  const auto session = Connected();
  EXPECT_FALSE(session->Handle(std::make_shared<v1::WorkerMessage>(most)));
  world_.Settle();
  EXPECT_TRUE(session->closed.ok());
  EXPECT_FALSE(session->Handle(std::make_shared<v1::WorkerMessage>(more)));
  world_.Settle();
  EXPECT_EQ(session->closed, absl::InvalidArgumentError(
                                 "a heartbeat names 131073 attempts; allowed: at most 131072"));
  EXPECT_EQ(session->read_ons, 1);

  const auto other = std::make_shared<TestSession>(context_);
  v1::WorkerMessage hello = Hello(limits::kHeldOfWorker + 1);
  EXPECT_FALSE(other->Handle(std::make_shared<v1::WorkerMessage>(hello)));
  EXPECT_THAT(other->closed.ToString(), HasSubstr("a hello names 131073 attempts"));
}

TEST_F(WorkerSessionTest, AFalseTokenHidesNoEndOfAnAttempt) {
  Submit("s", 1);
  const auto session = Connected();
  const auto assignments = [&] {
    return std::count_if(session->sent.begin(), session->sent.end(),
                         [](const auto& message) { return message.has_assignment(); });
  };
  ASSERT_EQ(assignments(), 1);
  const v1::Assignment assignment = session->sent.back().assignment();
  v1::WorkerMessage message;
  const auto add = [&](std::uint64_t token, std::uint64_t sequence, v1::Event event) {
    event.set_attempt_id(assignment.attempt_id());
    event.set_token(token);
    event.set_sequence(sequence);
    *message.mutable_events()->add_events() = std::move(event);
  };
  add(assignment.token(), 1, FailedEvent(state::ErrorKind::kTrainerDied, "it broke"));
  add(assignment.token() + 1, 2, StartedEvent(0, 1));
  session->Handle(std::make_shared<v1::WorkerMessage>(message));
  world_.Settle();
  world_.Advance(absl::Seconds(10));  // its back-off
  EXPECT_EQ(assignments(), 2) << "the job is tried again";
}

// An epoch and its checkpoint come in one batch: the epoch is news, the checkpoint is not.
TEST_F(WorkerSessionTest, AFileHidesNoNewsOfAnAttempt) {
  world_.steps.clear();
  world_.timed.clear();
  longest_silence_ = absl::Minutes(10);
  MakeScheduler();
  FleetContext context{.clock = world_,
                       .executor = world_,
                       .scheduler = *scheduler_,
                       .journal = journal_,
                       .heartbeat = absl::Seconds(5),
                       .lease = absl::Seconds(20),
                       .random_unit = [] { return 0.5; }};
  Submit("s", 1);
  const auto session = std::make_shared<TestSession>(context);
  v1::WorkerMessage hello = Hello();
  ASSERT_TRUE(session->Handle(std::make_shared<v1::WorkerMessage>(hello)));
  world_.Settle();
  const v1::Assignment assignment = session->sent.back().assignment();
  const auto pass = [&](absl::Duration time) {
    for (absl::Duration passed; passed < time; passed += absl::Seconds(15)) {
      world_.Advance(absl::Seconds(15));
      scheduler_->Heartbeat("w", session.get(), {{assignment.attempt_id(), assignment.token(), 0}});
    }
  };
  pass(absl::Minutes(9));
  v1::WorkerMessage message;
  for (const v1::Event& event : {StartedEvent(0, 1), CheckpointEvent(0, std::string(64, 'c'), 1)}) {
    v1::Event& sent = *message.mutable_events()->add_events();
    sent = event;
    sent.set_attempt_id(assignment.attempt_id());
    sent.set_token(assignment.token());
    sent.set_sequence(static_cast<std::uint64_t>(message.events().events_size()));
  }
  session->Handle(std::make_shared<v1::WorkerMessage>(message));
  world_.Settle();
  EXPECT_EQ(Text("SELECT last_sequence FROM attempts"), "2");
  pass(absl::Minutes(9));
  EXPECT_EQ(Text("SELECT count(*) FROM attempts WHERE outcome IS NULL"), "1");
}

// So that others' events come in between.
TEST_F(WorkerSessionTest, AWorkerWithMuchOnItsWayToTheDiskIsNotRead) {
  const auto session = Connected();
  journal_.slow = true;
  const auto events = [&] {
    v1::WorkerMessage message;
    for (int i = 0; i < 100; ++i) {
      v1::Event& event = *message.mutable_events()->add_events();
      event = StartedEvent(0, 1);
      event.set_attempt_id(1);
      event.set_sequence(static_cast<std::uint64_t>(i + 1));
    }
    return message;
  };
  const auto log = [&] {
    v1::WorkerMessage message;
    message.mutable_log()->set_attempt_id(1);
    message.mutable_log()->set_data(std::string(limits::kLogPartBytes, 'x'));
    return message;
  };
  // The session reads on after events by itself, after a log by what Handle returns.
  const auto reads_on = [&](v1::WorkerMessage message) {
    const int before = session->read_ons;
    return session->Handle(std::make_shared<v1::WorkerMessage>(message)) ||
           session->read_ons > before;
  };
  std::size_t handled = 1;
  while (reads_on(handled % 2 == 0 ? log() : events()) && handled < 1'000) ++handled;
  EXPECT_GT(handled, 4u);
  EXPECT_LT(handled, 1'000u);
  EXPECT_EQ(journal_.kept.size(), handled);
  const int before = session->read_ons;
  while (session->read_ons == before && !journal_.kept.empty()) {
    journal_.StoreOne();
    world_.Settle();
  }
  EXPECT_EQ(session->read_ons, before + 1) << "it is read again before everything is stored";
  EXPECT_FALSE(journal_.kept.empty());
  while (!journal_.kept.empty()) journal_.StoreOne();
  world_.Settle();
  EXPECT_EQ(session->read_ons, before + 1) << "once";
  EXPECT_TRUE(session->closed.ok());
}

TEST_F(WorkerSessionTest, EventsThatWaitKeepNoSession) {
  for (const absl::Status& full : {absl::ResourceExhaustedError("much is queued"),
                                   absl::UnavailableError("the writer has ended")}) {
    auto session = Connected();
    const std::weak_ptr<TestSession> left = session;
    journal_.full = full;
    v1::WorkerMessage message;
    v1::Event& event = *message.mutable_events()->add_events();
    event = StartedEvent(0, 1);
    event.set_attempt_id(1);
    event.set_sequence(1);
    EXPECT_FALSE(session->Handle(std::make_shared<v1::WorkerMessage>(message)));
    session->Ended();
    session.reset();
    world_.Settle();
    world_.timed.clear();  // the coordinator ends before the events are tried again
    EXPECT_TRUE(left.expired()) << full;
    journal_.full = absl::OkStatus();
  }
}

}  // namespace
}  // namespace pelab::service
