// One trainer, from the wait for its slot to its end: of one attempt, or of several whose jobs it
// takes together (packs.h).
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

// Trains, or runs analyses on kept weights, as the assignments say. A member that is alone ends when
// the trainer does; of several each ends by itself: when its job is done or has failed, or when it is
// cancelled while the trainer goes on with the others. What the trainer then still says about it
// counts for nothing, and slot and directories stay taken until the trainer is gone. Thread-safe. The
// destructor waits for its thread.
class TrainerRun {
 public:
  using Members = std::vector<std::shared_ptr<Attempt>>;

  // `plan`: nullopt: this worker has no such slot, which fails the attempts. At least one member.
  TrainerRun(const AttemptContext* context, std::optional<SlotPlan> plan, Members members);
  ~TrainerRun();

  // Begins; once.
  void Start();

  // Ends a member. The trainer gets SIGTERM once nobody needs it any more or all are to end with their
  // checkpoints, and SIGKILL after the grace of those that need it. Returns at once.
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
  const std::string trainer_id_;                    // kTrainerIdVariable
  std::map<std::string, std::string> directories_;  // by job name; of those that the trainer has
  Mutex mutex_;
  TrainerProcess* process_ ABSL_GUARDED_BY(mutex_) = nullptr;
  // The shortest of those that were settled here while others went on.
  absl::Duration dismissed_grace_ ABSL_GUARDED_BY(mutex_) = absl::InfiniteDuration();
  std::thread thread_;
};

}  // namespace pelab::agent
