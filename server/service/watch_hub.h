// Serves all WatchSweep streams on one thread. After a commit it reads each watched sweep once and
// sends it to all its watchers, at most five times a second.
#pragma once

#include <grpcpp/grpcpp.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "core/base/mutex.h"
#include "pelab/v1/sweeps.pb.h"

namespace pelab::service {

class WatchHub {
 public:
  // Reads the current state of a sweep. Called on the hub's thread.
  using Snapshot = std::function<absl::StatusOr<v1::SweepUpdate>(const std::string& sweep)>;
  // Returns a number that changes with every commit. Must be thread-safe.
  using Version = std::function<std::uint64_t()>;

  WatchHub(Snapshot snapshot, Version version);
  ~WatchHub();  // like Stop

  // Returns a reactor for one WatchSweep call. It lasts until gRPC is done with it. The call ends
  // with OK when the sweep has ended, with the error of Snapshot, or with RESOURCE_EXHAUSTED if too
  // many clients watch. Thread-safe.
  grpc::ServerWriteReactor<v1::SweepUpdate>* Watch(const std::string& sweep);
  // Ends all streams with UNAVAILABLE, and the thread, and waits for it. For one thread.
  void Stop();

 private:
  class Watcher;

  void Run();
  void Serve(bool changed);

  const Snapshot snapshot_;
  const Version version_;
  Mutex mutex_;
  std::vector<std::weak_ptr<Watcher>> watchers_ ABSL_GUARDED_BY(mutex_);
  bool added_ ABSL_GUARDED_BY(mutex_) = false;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace pelab::service
