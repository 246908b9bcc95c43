// Attacks by worker sessions.
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "server/limits.h"
#include "tests/bench/load/fake_worker.h"
#include "tests/bench/load/floods/attack.h"
#include "tests/bench/load/floods/worker_call.h"

namespace pelab::load {
namespace {

constexpr int kSessionLoops = 8;  // connections that open and close sessions
constexpr int kFalseWorkers = 4;  // sessions that send events with false tokens

// Holds sessions one after another and writes message(n), n = 0, 1, …, without a pause. Another
// thread reads the answers.
void WriteForEver(const Target& target, Tally& tally, const std::string& id,
                  const std::function<void(std::int64_t n, v1::WorkerMessage&)>& message) {
  while (true) {
    WorkerCall call(Dial(target), id, /*slots=*/0);
    ++tally.connections;
    std::thread reader([&call] {
      v1::CoordinatorMessage answer;
      while (call.Read(answer)) continue;
    });
    v1::WorkerMessage next;
    for (std::int64_t n = 0;; ++n) {
      message(n, next);
      if (!call.Write(next)) break;
      ++tally.calls;
    }
    ++tally.refused;  // the coordinator has ended the session
    reader.join();
  }
}

}  // namespace

void SessionsInALoop(const Target& target, Tally& tally) {
  OnThreads(kSessionLoops, [&](int loop) {
    const auto channel = Dial(target);
    ++tally.connections;
    for (int i = 0;; ++i) {
      WorkerCall call(channel, absl::StrCat("flood-", loop, "-", i), /*slots=*/1);
      ++tally.calls;
      v1::CoordinatorMessage welcome;
      if (!call.Read(welcome)) ++tally.refused;
    }
  });
}

void Heartbeats(const Target& target, Tally& tally) {
  WriteForEver(target, tally, "flood", [](std::int64_t n, v1::WorkerMessage& message) {
    message.mutable_heartbeat()->set_sequence(static_cast<std::uint64_t>(n));
  });
}

void FalseEvents(const Target& target, Tally& tally) {
  OnThreads(kFalseWorkers, [&](int worker) {
    WriteForEver(target, tally, absl::StrCat("flood-", worker),
                 [](std::int64_t n, v1::WorkerMessage& message) {
                   message.mutable_events()->Clear();
                   for (int i = 0; i < 100; ++i) {
                     v1::Event* event = message.mutable_events()->add_events();
                     event->set_attempt_id(1 + i % 2);
                     event->set_token(12345);
                     event->set_sequence(static_cast<std::uint64_t>(n * 100 + i + 1));
                     FillEpoch(i, *event->mutable_epoch());
                   }
                 });
  });
}

void LogChunks(const Target& target, Tally& tally) {
  while (true) {
    WorkerCall call(Dial(target), "flood", /*slots=*/1);
    ++tally.connections;
    const auto assignment = call.Begin();
    if (!assignment) CannotAttack("no job was assigned");
    std::thread reader([&call] {
      v1::CoordinatorMessage answer;
      while (call.Read(answer)) continue;
    });
    v1::WorkerMessage message;
    message.mutable_log()->set_attempt_id(assignment->attempt_id());
    message.mutable_log()->set_token(assignment->token());
    message.mutable_log()->set_data(std::string(limits::kLogPartBytes, 'x'));
    for (std::uint64_t n = 0; call.Write(message); ++n) {
      message.mutable_log()->set_offset(n * limits::kLogPartBytes);
      ++tally.calls;
      tally.bytes += static_cast<std::int64_t>(limits::kLogPartBytes);
      if (n % 1'000 == 0 && !call.Beat(*assignment)) break;
    }
    ++tally.refused;
    reader.join();
  }
}

}  // namespace pelab::load
