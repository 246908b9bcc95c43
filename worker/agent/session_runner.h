// Keeps a session with the coordinator running: connects, moves messages between the stream and the
// Session, and reconnects after a pause if the stream breaks.
#pragma once

#include <deque>
#include <functional>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "core/base/clock.h"
#include "core/base/mutex.h"
#include "worker/agent/fleet_client.h"
#include "worker/agent/session.h"

namespace pelab::agent {

// One thread calls Run; the other functions are thread-safe.
class SessionRunner {
 public:
  // `address` appears in log messages only. The pointers must outlive the runner.
  SessionRunner(FleetClient* client, Session* session, const Clock* clock, std::string address);

  // Runs until the daemon may end: after Goodbye, or after the time that BeginShutdown allowed. An
  // error means that the coordinator has never accepted this worker and never will (a wrong token,
  // another protocol version).
  absl::Status Run();

  // Wakes Run, because there may be something to send.
  void Notify();
  // Run's thread calls `tend` between messages, and at the latest at the monotonic time that the
  // last call returned. Set it before Run.
  void SetTend(std::function<absl::Duration()> tend) { tend_ = std::move(tend); }
  // Begins the end of the daemon. `reason` is told to the coordinator. Run's thread calls
  // `on_session_thread` once, between messages, because the supervisor belongs to that thread. On
  // the same thread `all_ended` answers whether all trainers are gone. Run returns within
  // `patience`.
  void BeginShutdown(v1::Goodbye::Reason reason, std::function<void()> on_session_thread,
                     std::function<bool()> all_ended, absl::Duration patience);

 private:
  struct Connection;

  bool ShutdownDue();  // the patience is over
  void Tend();
  void ObeyShutdown();
  absl::Status RunConnection();
  absl::Status Pump(Connection* connection);
  void WaitForWork(Connection* connection);
  void Pause(absl::Duration duration);
  std::string Why(const absl::Status& status) const;
  void ReportBroken(const absl::Status& status);

  FleetClient* const client_;
  Session* const session_;
  const Clock* const clock_;
  const std::string address_;
  bool reported_away_ = false;
  std::string reported_why_;  // of the last failed connection
  bool ever_welcomed_ = false;
  bool shutting_down_ = false;  // Run's thread has called on_session_thread
  std::function<absl::Duration()> tend_;
  absl::Duration next_tend_ = absl::InfiniteDuration();  // monotonic

  Mutex mutex_;
  bool notified_ ABSL_GUARDED_BY(mutex_) = false;
  bool shutdown_ ABSL_GUARDED_BY(mutex_) = false;
  v1::Goodbye::Reason reason_ ABSL_GUARDED_BY(mutex_) = v1::Goodbye::REASON_UNSPECIFIED;
  std::function<void()> on_shutdown_ ABSL_GUARDED_BY(mutex_);
  std::function<bool()> all_ended_ ABSL_GUARDED_BY(mutex_);
  absl::Duration shutdown_deadline_ ABSL_GUARDED_BY(mutex_) = absl::InfiniteDuration();
};

}  // namespace pelab::agent
