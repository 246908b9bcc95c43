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
#include "core/base/mutex.h"

namespace pelab::http {

// Thread-safe. httplib deletes it after shutdown().
class ConnectionPool final : public httplib::TaskQueue {
 public:
  // At most `threads` connections are served and `waiting` more are queued here. Further ones wait
  // in the operating system's queue.
  ConnectionPool(std::size_t threads, std::size_t waiting)
      : most_threads_(threads), most_waiting_(waiting) {}

  // Newer versions of httplib return whether the connection was accepted. Here it always is.
  using Taken = decltype(std::declval<httplib::TaskQueue&>().enqueue(nullptr));
  Taken enqueue(std::function<void()> serve) override;
  void shutdown() override;
  // Whether connections wait for a thread.
  bool others_wait();

 private:
  void Run();

  const std::size_t most_threads_;
  const std::size_t most_waiting_;
  Mutex mutex_;
  std::deque<std::function<void()>> queue_ ABSL_GUARDED_BY(mutex_);
  std::size_t idle_ ABSL_GUARDED_BY(mutex_) = 0;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_;  // used by the accepting thread only
};

}  // namespace pelab::http
