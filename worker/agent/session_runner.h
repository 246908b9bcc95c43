// Keeps a session with the coordinator going: connects, moves messages between the stream and the
// Session, and connects again after a pause when the stream breaks.
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

// Run is one thread's; the rest is thread-safe.
class SessionRunner {
 public:
  // `address` is for messages. The others must outlive the runner.
  SessionRunner(FleetClient* client, Session* session, const Clock* clock, std::string address);

  // Until the daemon may end: after Goodbye, or when the time that BeginShutdown gave
  // is over. An error means that the coordinator never took this worker and never will (a wrong
  // token, another protocol).
  absl::Status Run();

  // Something may have to be sent.
  void Notify();
  // The daemon ends. `on_session_thread` is called once by Run's thread, between messages (the
  // supervisor is that thread's); `all_ended` answers there whether the trainers are gone. Run
  // returns within `patience`.
  void BeginShutdown(std::function<void()> on_session_thread, std::function<bool()> all_ended,
                     absl::Duration patience);

 private:
  struct Connection;

  bool ShutdownDue();  // the patience is over
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
  bool ever_welcomed_ = false;
  bool shutting_down_ = false;  // Run's thread has obeyed

  Mutex mutex_;
  bool notified_ ABSL_GUARDED_BY(mutex_) = false;
  bool shutdown_ ABSL_GUARDED_BY(mutex_) = false;
  std::function<void()> on_shutdown_ ABSL_GUARDED_BY(mutex_);
  std::function<bool()> all_ended_ ABSL_GUARDED_BY(mutex_);
  absl::Duration shutdown_deadline_ ABSL_GUARDED_BY(mutex_) = absl::InfiniteDuration();
};

}  // namespace pelab::agent
