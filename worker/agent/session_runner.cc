#include "worker/agent/session_runner.h"

#include <algorithm>
#include <memory>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/ids.h"
#include "core/base/log.h"
#include "core/base/mutex.h"
#include "core/rpc/backoff.h"
#include "worker/agent/limits.h"

namespace pelab::agent {
namespace {

constexpr absl::Duration kFullPause = absl::Milliseconds(100);
constexpr absl::Duration kFirstReconnectPause = absl::Milliseconds(100);
// How long to wait for the end of a stream after Goodbye.
constexpr absl::Duration kFarewell = absl::Milliseconds(300);
// How long to wait if one direction of a stream has ended by itself. The other one follows and
// brings the reason, which a cancelled stream would not have. A busy host may need seconds for it.
constexpr absl::Duration kReason = absl::Seconds(10);

// Errors that a new connection does not fix.
bool IsFinal(const absl::Status& status) {
  return absl::IsUnauthenticated(status) || absl::IsPermissionDenied(status) ||
         absl::IsUnimplemented(status) || absl::IsFailedPrecondition(status) ||
         absl::IsInvalidArgument(status);
}

}  // namespace

// A stream, with one thread that reads it and one that writes it. The runner's mutex guards every
// member except the stream.
struct SessionRunner::Connection {
  std::unique_ptr<FleetStream> stream;
  std::deque<v1::CoordinatorMessage> inbox;
  std::deque<v1::WorkerMessage> outbox;
  bool reading = true;
  bool writing = true;
  bool close = false;      // the writer ends after it has sent the outbox
  bool abandoned = false;  // both end at once
};

SessionRunner::SessionRunner(FleetClient* client, Session* session, const Clock* clock,
                             std::string address)
    : client_(client), session_(session), clock_(clock), address_(std::move(address)) {}

void SessionRunner::Notify() {
  MutexLock lock(&mutex_);
  notified_ = true;
}

void SessionRunner::BeginShutdown(v1::Goodbye::Reason reason,
                                  std::function<void()> on_session_thread,
                                  std::function<bool()> all_ended, absl::Duration patience) {
  MutexLock lock(&mutex_);
  if (shutdown_) return;
  shutdown_ = true;
  reason_ = reason;
  on_shutdown_ = std::move(on_session_thread);
  all_ended_ = std::move(all_ended);
  shutdown_deadline_ = clock_->Monotonic() + patience;
  notified_ = true;
}

void SessionRunner::Tend() {
  if (tend_ && !shutting_down_) next_tend_ = tend_();
}

void SessionRunner::ObeyShutdown() {
  if (shutting_down_) return;
  std::function<void()> obey;
  v1::Goodbye::Reason reason = v1::Goodbye::REASON_UNSPECIFIED;
  {
    MutexLock lock(&mutex_);
    if (!shutdown_) return;
    obey = on_shutdown_;
    reason = reason_;
  }
  shutting_down_ = true;
  obey();
  session_->BeginGoodbye(reason, /*without_waiting=*/false);
}

bool SessionRunner::ShutdownDue() {
  MutexLock lock(&mutex_);
  return clock_->Monotonic() >= shutdown_deadline_;
}

// Replaces gRPC's messages for these cases, which do not help the reader of a log.
std::string SessionRunner::Why(const absl::Status& status) const {
  if (absl::IsCancelled(status) || status.ok()) return "the connection was closed";
  if (absl::IsUnavailable(status) && !session_->welcomed()) return "nobody answers there";
  return std::string(status.message());
}

void SessionRunner::ReportBroken(const absl::Status& status) {
  // A session that ended is followed by the reason, such as a token that was taken back.
  const std::string why = Why(status);
  if (!reported_away_ || why != reported_why_) {
    spdlog::warn("no session with the coordinator at {}: {}; trying again", address_, why);
    spdlog::debug("{}", status.ToString());
  }
  reported_away_ = true;
  reported_why_ = why;
}

absl::Status SessionRunner::Run() {
  rpc::Backoff backoff(kFirstReconnectPause, session_->lease() / 4, RandomUnit);
  while (true) {
    Tend();
    ObeyShutdown();
    absl::Status status = RunConnection();
    if (session_->said_goodbye()) return absl::OkStatus();
    if (!ever_welcomed_ && IsFinal(status)) return status;
    ReportBroken(status);
    if (session_->welcomed()) backoff.Reset();
    backoff.SetCap(session_->lease() / 4);
    Pause(backoff.Next());
    Tend();
    ObeyShutdown();
    // There is no coordinator to tell. Events that are not acknowledged stay in the spool.
    if (shutting_down_) {
      MutexLock lock(&mutex_);
      if (all_ended_() || clock_->Monotonic() >= shutdown_deadline_) return absl::OkStatus();
    }
  }
}

// Returns earlier if the daemon has to end.
void SessionRunner::Pause(absl::Duration duration) {
  const absl::Duration end = clock_->Monotonic() + duration;
  while (true) {
    const absl::Duration until = shutting_down_ ? end : std::min(end, next_tend_);
    {
      MutexLock lock(&mutex_);
      const auto shutdown = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
        return shutdown_ && !shutting_down_;
      };
      if (mutex_.AwaitFor(shutdown, until - clock_->Monotonic())) return;
    }
    if (clock_->Monotonic() >= end) return;
    Tend();
  }
}

absl::Status SessionRunner::RunConnection() {
  Connection connection;
  connection.stream = client_->OpenSession();
  session_->Connected();
  std::thread reader([&] {
    v1::CoordinatorMessage message;
    while (connection.stream->Read(&message)) {
      MutexLock lock(&mutex_);
      const auto room = [&] {
        return connection.inbox.size() < limits::kMessagesIn || connection.abandoned;
      };
      mutex_.Await(room);
      connection.inbox.push_back(std::move(message));
      message.Clear();
    }
    MutexLock lock(&mutex_);
    connection.reading = false;
  });
  std::thread writer([&] {
    bool broken = false;
    while (!broken) {
      v1::WorkerMessage message;
      {
        MutexLock lock(&mutex_);
        const auto work = [&] {
          return !connection.outbox.empty() || connection.close || connection.abandoned;
        };
        mutex_.Await(work);
        if (connection.abandoned || connection.outbox.empty()) break;
        message = std::move(connection.outbox.front());
        connection.outbox.pop_front();
      }
      broken = !connection.stream->Write(message);
    }
    if (!broken) connection.stream->WritesDone();
    MutexLock lock(&mutex_);
    connection.writing = false;
  });
  const absl::Status why = Pump(&connection);
  {
    MutexLock lock(&mutex_);
    connection.close = true;
    const bool goodbye = session_->said_goodbye();
    const auto finished = [&] { return !connection.reading && !connection.writing; };
    const auto over = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      return finished() || (shutdown_ && !goodbye);
    };
    if (why.ok()) mutex_.AwaitFor(over, goodbye ? kFarewell : kReason);
    connection.abandoned = true;
    if (!finished()) connection.stream->Cancel();
  }
  reader.join();
  writer.join();
  const absl::Status status = connection.stream->Finish();
  return why.ok() ? status : why;
}

absl::Status SessionRunner::Pump(Connection* connection) {
  while (true) {
    Tend();
    ObeyShutdown();
    if (shutting_down_ && ShutdownDue()) {
      session_->BeginGoodbye(v1::Goodbye::REASON_UNSPECIFIED, /*without_waiting=*/true);
    }
    std::deque<v1::CoordinatorMessage> inbox;
    bool room = true;
    bool alive = true;
    {
      MutexLock lock(&mutex_);
      inbox.swap(connection->inbox);
      notified_ = false;
      alive = connection->reading && connection->writing;
    }
    for (const v1::CoordinatorMessage& message : inbox) {
      if (absl::Status status = session_->Receive(message); !status.ok()) return status;
    }
    if (session_->welcomed() && reported_away_)
      spdlog::info("connected to the coordinator at {}", address_);
    if (session_->welcomed()) {
      reported_away_ = false;
      ever_welcomed_ = true;
    }
    if (!alive) return absl::OkStatus();  // the stream's own status says why
    if (session_->Silent()) return absl::UnavailableError("it was silent for a whole lease");
    while (room) {
      {
        MutexLock lock(&mutex_);
        room = connection->outbox.size() < limits::kMessagesOut;
      }
      v1::WorkerMessage message;
      if (!room || !session_->Next(&message)) break;
      MutexLock lock(&mutex_);
      connection->outbox.push_back(std::move(message));
    }
    if (session_->said_goodbye()) return absl::OkStatus();
    if (shutting_down_ && ShutdownDue())
      return absl::DeadlineExceededError("this worker had to end");
    WaitForWork(connection);
  }
}

void SessionRunner::WaitForWork(Connection* connection) {
  absl::Duration timer = std::min(session_->NextTimer(), next_tend_) - clock_->Monotonic();
  MutexLock lock(&mutex_);
  const bool was_full = connection->outbox.size() >= limits::kMessagesOut;
  // A heartbeat that is due must wait for room in the outbox. Its time has come already, so waiting
  // for its time would be a busy loop.
  if (was_full) timer = std::max(timer, kFullPause);
  const auto work = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return notified_ || !connection->inbox.empty() || !connection->reading ||
           !connection->writing || (was_full && connection->outbox.size() < limits::kMessagesOut);
  };
  const absl::Duration patience =
      shutdown_ ? shutdown_deadline_ - clock_->Monotonic() : absl::InfiniteDuration();
  mutex_.AwaitFor(work, std::max(std::min(timer, patience), absl::ZeroDuration()));
}

}  // namespace pelab::agent
