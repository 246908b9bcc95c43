// Ends calls whose peer keeps the coordinator waiting: a client that does not take its answer, or
// that begins an upload and sends nothing. Such a call would otherwise hold its thread, its memory
// and its place for as long as the client likes. Clients that do not take large answers are not
// waited for as long: all answers together have a limit.
#pragma once

#include <grpcpp/support/server_interceptor.h>

#include <cstddef>
#include <memory>
#include <set>
#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/time/time.h"
#include "core/base/clock.h"
#include "core/base/mutex.h"

namespace pelab::service {

// Watches the calls of one server, and has a thread for it. Thread-safe.
class SilentPeers {
 public:
  // A call that waits for `most` is cancelled. If answers of more than `most_bytes` wait, those
  // whose time is up first are cancelled at once. `clock` must outlive this object.
  SilentPeers(const Clock& clock, absl::Duration most, std::size_t most_bytes);
  ~SilentPeers();  // all calls must have ended

  // For grpc::ServerBuilder. Calls that are made for long are not watched: a worker's session has
  // leases and a limit of its own, and a stream that watches a sweep holds no thread. A client that
  // follows a log may pause for longer, because somebody may read it page by page.
  std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface> Factory();

 private:
  class Call;
  class Maker;
  using Deadline = std::pair<absl::Duration, Call*>;

  void Run();
  void MakeRoom(const Call& call) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Clock& clock_;
  const absl::Duration most_;
  const std::size_t most_bytes_;
  Mutex mutex_;
  std::size_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;  // of the answers that wait
  std::set<Deadline> waiting_ ABSL_GUARDED_BY(mutex_);
  bool ending_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace pelab::service
