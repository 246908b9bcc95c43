// Honest clients of a coordinator that is attacked. They measure how long they wait.
#pragma once

#include <grpcpp/grpcpp.h>

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "core/base/mutex.h"
#include "pelab/v1/results.grpc.pb.h"
#include "pelab/v1/sweeps.grpc.pb.h"
#include "tests/bench/load/fleet.h"
#include "tests/bench/load/latencies.h"

namespace pelab::load {

// A worker with one running job. It measures each heartbeat, from when it was due to its answer,
// and an event each 200 ms, until it is acknowledged. The interval of heartbeats is the
// coordinator's. Not thread-safe.
class HonestWorker {
 public:
  // Returns when a job has been assigned to it.
  static absl::StatusOr<std::unique_ptr<HonestWorker>> Start(const std::string& address);

  // The waits that ended since the last call, also those in sessions that broke. A heartbeat or
  // event that had no answer when its session broke waits until the next session is welcomed, which
  // is then told of it.
  Latencies Take();
  // How long each heartbeat and event has waited that is not answered yet.
  Latencies Unanswered() { return fleet_->Unanswered(); }
  // Connects again if its session was broken, as a daemon does. Returns whether it was.
  bool MendSession();

 private:
  explicit HonestWorker(std::string address) : address_(std::move(address)) {}
  absl::Status Connect();

  Latencies TakeOfSession();

  const std::string address_;
  std::unique_ptr<Fleet> fleet_;
  Latencies earlier_;  // of sessions that broke
};

// Asks for a page of sweeps and a page of jobs each 100 ms, whether or not earlier questions are
// answered, and asks again if an answer is an error. It measures each question from when it was due
// to its answer. Thread-safe.
class HonestReader {
 public:
  static absl::StatusOr<std::unique_ptr<HonestReader>> Start(const std::string& address);
  ~HonestReader();

  Latencies Take();
  Latencies Unanswered();
  // How many answers were errors since the last call.
  std::int64_t TakeErrors();

 private:
  enum class Question { kSweeps, kJobs };
  struct Due {
    std::int64_t due = 0;
    Question question = Question::kSweeps;
    bool operator<(const Due& other) const {
      return std::pair(due, question) < std::pair(other.due, other.question);
    }
  };

  explicit HonestReader(const std::shared_ptr<grpc::Channel>& channel);
  void Run();
  void Ask(const Due& due);
  void Answered(const Due& due, const grpc::Status& status);

  std::unique_ptr<v1::Sweeps::Stub> sweeps_;
  std::unique_ptr<v1::Results::Stub> results_;
  Mutex mutex_;
  std::multiset<Due> waiting_ ABSL_GUARDED_BY(mutex_);  // without a good answer so far
  std::vector<Due> ask_again_ ABSL_GUARDED_BY(mutex_);
  int under_way_ ABSL_GUARDED_BY(mutex_) = 0;  // calls
  Latencies latencies_ ABSL_GUARDED_BY(mutex_);
  std::int64_t errors_ ABSL_GUARDED_BY(mutex_) = 0;
  bool ending_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace pelab::load
