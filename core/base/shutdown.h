// Requests to end a program: SIGTERM, SIGINT, SIGHUP (its terminal was closed), or the death of the
// process that started it (`--parent-fd`).
#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "core/base/mutex.h"
#include "core/base/unique_fd.h"

namespace pelab {

// Turns all of these requests into one event. Create it in main before any other thread: it blocks
// SIGTERM, SIGINT and SIGHUP for the calling thread and all threads started later, and reads these
// signals on its own thread. SIGHUP is left alone if it is ignored, as under nohup. Also ignores
// SIGPIPE and SIGXFSZ (`ulimit -f`), so that writing fails with an error that can be reported.
// Thread-safe.
class ShutdownSignal {
 public:
  // `reason` is for people ("SIGTERM", "parent ended"). `count` is 1 for the first request, so that
  // a second Ctrl-C can mean something else. Runs on the watching thread, or on the thread that
  // calls Request.
  using Callback = std::function<void(absl::string_view reason, int count)>;

  ShutdownSignal();
  ~ShutdownSignal();
  ShutdownSignal(const ShutdownSignal&) = delete;
  ShutdownSignal& operator=(const ShutdownSignal&) = delete;

  // Treats end-of-file (or an error) on `fd` as a request to end. Takes ownership of `fd` and marks
  // it close-on-exec. At most one parent. INVALID_ARGUMENT if `fd` is not open.
  absl::Status WatchParent(int fd);

  // Sets the callback for every later request. If a request has been made already, the callback
  // also runs at once, on the caller's thread. Replaces the earlier callback, which no longer runs
  // once this returns; an empty function removes it. Must not be called from within a callback.
  void OnRequest(const Callback& callback);

  // Requests the end from within the program.
  void Request(absl::string_view reason);

  bool requested() const { return count_.load(std::memory_order_acquire) > 0; }
  std::string reason() const;  // reason of the first request; "" before it
  void Wait() const;
  bool WaitFor(absl::Duration timeout) const;  // whether a request has been made
  // A descriptor for poll loops: readable from the first request on. Do not read from it.
  int fd() const { return requested_event_.get(); }

 private:
  void Watch();
  void Wake();

  UniqueFd signals_;
  UniqueFd wake_;  // ends or refreshes the watching thread's poll
  UniqueFd requested_event_;
  std::atomic<int> count_{0};
  std::atomic<bool> stop_{false};
  Mutex calling_;  // held while a callback runs; always taken before mutex_
  mutable Mutex mutex_;
  UniqueFd parent_ ABSL_GUARDED_BY(mutex_);
  std::string reason_ ABSL_GUARDED_BY(mutex_);
  Callback callback_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace pelab
