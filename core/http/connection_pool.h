// The threads that serve connections: as many as are needed at the same time, up to a limit.
// httplib keeps one thread for every open connection, so the limit also bounds the open
// connections.
#pragma once

#include <httplib.h>

#include <cstddef>
#include <deque>
#include <functional>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/time/time.h"
#include "core/base/mutex.h"

namespace pelab::http {

// Makes a thread that runs `body`. Throws std::system_error if the system gives no further thread.
using ThreadMaker = std::function<std::thread(std::function<void()> body)>;
std::thread MakeThread(std::function<void()> body);

// Thread-safe. httplib deletes it after shutdown().
class ConnectionPool final : public httplib::TaskQueue {
 public:
  // At most `threads` connections are served and `waiting` more are queued here. Further ones wait
  // in the operating system's queue. There is one thread from the beginning, so every connection is
  // served sometime, even if no further thread can be made. Throws std::system_error if that first
  // one cannot be made.
  ConnectionPool(std::size_t threads, std::size_t waiting, ThreadMaker maker = MakeThread);

  // Newer versions of httplib return whether the connection was accepted. Here it always is.
  using Taken = decltype(std::declval<httplib::TaskQueue&>().enqueue(nullptr));
  Taken enqueue(std::function<void()> serve) override;
  void shutdown() override;
  // Whether connections wait for a thread.
  bool others_wait();

 private:
  void Run();
  void AddThread();

  const std::size_t most_threads_;
  const std::size_t most_waiting_;
  const ThreadMaker maker_;
  Mutex mutex_;
  std::deque<std::function<void()>> queue_ ABSL_GUARDED_BY(mutex_);
  std::size_t idle_ ABSL_GUARDED_BY(mutex_) = 0;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  // Used by the accepting thread only.
  std::vector<std::thread> threads_;
  absl::Time warned_ = absl::InfinitePast();
};

}  // namespace pelab::http
