// Many fake workers, their shared connections, and one thread that keeps their pace.
#pragma once

#include <memory>
#include <queue>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "tests/bench/load/fake_worker.h"

namespace pelab::load {

struct FleetOptions {
  std::string address;
  std::string name = "load";  // the workers are NAME-0, NAME-1, …
  int workers = 1;
  int slots = 1;
  int channels = 0;   // connections; 0: one per worker, as real daemons have
  bool gpus = false;  // each slot has a GPU, and heartbeats say how it is
};

class Fleet {
 public:
  Fleet(const FleetOptions& options, std::function<absl::Duration(int epochs)> pace);
  ~Fleet();  // calls Stop

  // Sets a function that is called for each assignment. Call before Start.
  void OnAssignment(std::function<void(const v1::Assignment&, std::int64_t now)> hook) {
    hooks_.on_assignment = std::move(hook);
  }
  // Connects every worker. DEADLINE_EXCEEDED if the coordinator has not welcomed all of them within
  // a minute, UNAVAILABLE if a session ends before.
  absl::Status Start();
  // Breaks every stream, as if the daemons were killed.
  void Stop();

  const WorkerHooks& counters() const { return hooks_; }
  // The latencies since the last call.
  Latencies TakeLatencies();
  // The same for heartbeats.
  Latencies TakeBeats();
  // For how long each heartbeat and event waits that has no answer yet.
  Latencies Unanswered();

 private:
  using Due = std::pair<std::int64_t, std::size_t>;

  void Run();
  bool TakeDue(std::vector<std::size_t>& due);

  const FleetOptions options_;
  WorkerHooks hooks_;
  std::vector<std::unique_ptr<FakeWorker>> workers_;
  Mutex mutex_;
  std::vector<std::int64_t> next_ ABSL_GUARDED_BY(mutex_);  // next tick of each worker
  std::priority_queue<Due, std::vector<Due>, std::greater<>> due_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace pelab::load
