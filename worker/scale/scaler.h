// Starts workers on a cluster when jobs wait. It never ends a worker that works: workers end by
// themselves when they are idle.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "core/base/trace_context.h"
#include "worker/scale/allocation_spans.h"
#include "worker/scale/allocations.h"
#include "worker/scale/queue.h"
#include "worker/scale/throttle.h"

namespace pelab::scale {

// The batch system that runs allocations. Calls may take seconds. For one thread.
class BatchSystem {
 public:
  virtual ~BatchSystem() = default;
  // The allocations of these queues, by queue, each with its id and state; also those that have
  // ended a short time ago. One call for all.
  virtual absl::StatusOr<std::map<std::string, std::vector<Sighting>>> Look(
      const std::vector<std::string>& queues) = 0;
  // Returns the id of the new allocation, whose span is `span`.
  virtual absl::StatusOr<std::string> Submit(const Queue& queue, const TraceContext& span) = 0;
  virtual absl::Status Cancel(const std::string& id) = 0;
  // Asks whether it would accept an allocation of this queue. Returns its answer, for people.
  virtual absl::StatusOr<std::string> Test(const Queue& queue) = 0;
};

// A queue as the coordinator has it.
struct GivenQueue {
  Queue queue;
  std::string paused;     // why nothing is submitted; empty: it is not paused
  bool removing = false;  // its waiting allocations are to be cancelled
};

// A report to the coordinator about a queue.
struct QueueReport {
  std::string queue;
  const Allocations* allocations = nullptr;
  std::string pause;  // why the queue is to be paused; empty: for no new reason
};

// The workers that the coordinator knows, by name. true: the worker is connected, or has jobs.
using Workers = std::map<std::string, bool>;

// The coordinator, as far as the scaler asks it. A call is made below `span`; nullopt: it
// belongs to no trace. For one thread.
class Coordinator {
 public:
  virtual ~Coordinator() = default;
  virtual absl::StatusOr<Demand> DemandFor(const Queue& queue) = 0;
  // All workers that are, or were, connected.
  virtual absl::StatusOr<Workers> ListWorkers() = 0;
  // Reports, and returns the queues that there are now.
  virtual absl::StatusOr<std::vector<GivenQueue>> Report(
      const std::vector<QueueReport>& reports, const std::optional<TraceContext>& span) = 0;
  // The worker's allocation is over. Returns how many attempts have lost their lease.
  virtual absl::StatusOr<int> WorkerGone(const std::string& worker, const std::string& why,
                                         const std::optional<TraceContext>& span) = 0;
};

// Not thread-safe. The pointers must outlive the scaler.
class Scaler {
 public:
  // For these queues. Their pauses last until this program starts anew.
  Scaler(std::vector<Queue> queues, BatchSystem* batch, Coordinator* coordinator,
         AllocationSpans* spans);
  // For the queues that the coordinator has. It is told of their allocations, and keeps pauses.
  Scaler(BatchSystem* batch, Coordinator* coordinator, AllocationSpans* spans)
      : batch_(batch), coordinator_(coordinator), spans_(spans), reports_(true) {}

  // Reports to the coordinator and takes its queues. Does nothing if the queues are from a file.
  absl::Status Report();
  // Looks at the batch system, and at the coordinator's workers. Until the first look at a queue
  // has succeeded, nothing is submitted to it: only the look says what runs already. If an
  // allocation is over but the coordinator considers its worker alive, the worker is reported.
  absl::Status Look(absl::Duration now);
  // Whether some queue was not looked at yet.
  bool wants_look() const;
  // Asks the coordinator, and submits what is wanted. Errors are those of the coordinator; refused
  // submissions are logged and remembered.
  absl::Status Step(absl::Duration now);

  struct QueueState {
    Queue queue;
    std::string paused;     // by the coordinator; why
    bool removing = false;  // as in GivenQueue
    bool looked = false;
    Allocations allocations;
    Throttle throttle;
    Demand demand;     // as of the last step
    std::string said;  // the last reason that was logged
    // Allocations that are over, with their last state. The coordinator may not know yet that their
    // workers are gone.
    std::map<std::string, std::string> over;
    std::set<std::string> told;       // those whose workers were reported
    std::set<std::string> cancelled;  // waiting ones of a queue that is being removed
  };
  const std::vector<QueueState>& queues() const { return queues_; }

  // The allocations that a queue wants, and why.
  struct Wish {
    Demand demand;
    int coming = 0;  // slots of allocations that wait or start, of all queues of its device
    int wanted = 0;  // allocations
    int now = 0;     // how many of them a step submits; 0 if the queue is paused or being removed
  };
  // Asks the coordinator. `planned` slots count as coming too.
  absl::StatusOr<Wish> WishOf(const QueueState& state, int planned = 0) const;

 private:
  void Take(const std::vector<GivenQueue>& given);
  void TakeSettings(const GivenQueue& given, QueueState& state);
  void TakeEnded(const std::vector<Ended>& ended, QueueState& state);
  void TellGone(const std::vector<Sighting>& listed, const Workers& workers, QueueState& state);
  bool TellOneGone(const std::string& id, const std::string& last, QueueState& state);
  void CancelLate(absl::Duration now, QueueState& state);
  void CancelWaiting(QueueState& state);
  int ComingSlots(const std::string& device) const;
  void Submit(int count, absl::Duration now, QueueState& state);

  BatchSystem* const batch_;
  Coordinator* const coordinator_;
  AllocationSpans* const spans_;
  const bool reports_ = false;
  bool may_tell_ = true;  // the coordinator lets this program report workers
  std::vector<QueueState> queues_;
};

}  // namespace pelab::scale
