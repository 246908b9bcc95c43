// One trainer process, from the wait for its slot to its end. It serves one attempt, or several
// whose jobs it trains together (packs.h).
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "core/base/mutex.h"
#include "worker/agent/attempt.h"
#include "worker/agent/devices.h"
#include "worker/agent/stall_watch.h"
#include "worker/agent/trainer_process.h"

namespace pelab::agent {

// Trains, or analyzes kept weights, as the assignments say. A single member ends when the trainer
// ends. Each of several members ends on its own: when its job is done or has failed, or when it is
// cancelled while the trainer goes on with the others. Later lines about an ended member are
// ignored. The slot and the directories stay taken until the trainer is gone. Thread-safe. The
// destructor waits for the run's thread.
class TrainerRun {
 public:
  using Members = std::vector<std::shared_ptr<Attempt>>;

  // `plan` is nullopt if this worker has no such slot; then the attempts fail. There must be at
  // least one member.
  TrainerRun(const AttemptContext* context, std::optional<SlotPlan> plan, Members members);
  ~TrainerRun();

  // Starts the run's thread. Call it once.
  void Start();

  // Ends a member; returns at once. The trainer gets SIGTERM once every member has ended or was
  // stopped, and one at least was stopped, or once all members are to end with their checkpoints.
  // It gets SIGKILL after the shortest grace of the members that it still serves; if there are
  // none, of those that were stopped before.
  void Stop(Attempt& member, StopReason reason, absl::Duration grace);

 private:
  using Jobs = std::vector<Attempt*>;

  void Run();
  void RunOnSlot();
  void Train();
  Jobs Going() const;  // members that are neither settled nor stopped
  void FetchAll();
  absl::StatusOr<std::unique_ptr<TrainerProcess>> StartTrainer(const Jobs& jobs);
  void Watch(TrainerProcess& process, const Jobs& jobs);
  absl::Status OnLine(absl::string_view line, const Jobs& jobs, StallWatch& watch);
  void Obey();

  const AttemptContext* const context_;
  const std::optional<SlotPlan> plan_;
  const Members members_;
  const std::string trainer_id_;  // kTrainerIdVariable
  // by job name; only the jobs that the trainer was given
  std::map<std::string, std::string> directories_;
  Mutex mutex_;
  TrainerProcess* process_ ABSL_GUARDED_BY(mutex_) = nullptr;
  // The shortest grace among the members that were settled here while others went on.
  absl::Duration dismissed_grace_ ABSL_GUARDED_BY(mutex_) = absl::InfiniteDuration();
  std::thread thread_;
};

}  // namespace pelab::agent
