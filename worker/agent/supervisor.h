// Owns the attempts of this host: starts and stops them, recovers them after a crash of the daemon,
// and forgets them once the coordinator has acknowledged how they ended.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "core/base/unique_fd.h"
#include "worker/agent/attempt.h"
#include "worker/agent/attempt_host.h"
#include "worker/agent/devices.h"
#include "worker/agent/trainer_run.h"

namespace pelab::agent {

// True if a job needs its checkpoint no more after an attempt that ended like this.
bool IsFinal(const v1::Finished& finished);

// After a crash of the daemon its trainers end, because their pipe closes. Recovery depends on what
// each attempt had spooled:
//
//   spooled                     recovery
//   the end                     presented as held (slot -1), sent again, kept until acknowledged
//   done, weights not uploaded  presented; the weights are uploaded, and it ends as succeeded
//   something else              presented; it ends as preempted. The coordinator queues the job
//                               again at once, and its checkpoint is in jobs/
//   nothing                     forgotten, not presented: the coordinator sends it again or counts
//                               it as lost
//
// All functions run on the session's thread. The destructor kills the running trainers and waits
// for them.
class Supervisor final : public AttemptHost {
 public:
  // `context.work_dir`, `quota` and the other pointers must outlive the supervisor. `plans` are its
  // slots, by number.
  static absl::StatusOr<std::unique_ptr<Supervisor>> Create(AttemptContext context,
                                                            std::vector<SlotPlan> plans);
  ~Supervisor() override;

  // Takes over the attempts that an earlier daemon has left behind. Call it once, before the first
  // session.
  void Recover();

  std::vector<v1::HeldAttempt> Held() override;
  void Disconnected() override;
  void Answer(const v1::HeldAnswer& answer) override;
  void Start(const v1::Assignment& assignment) override { Take({assignment}, StopReason::kNone); }
  void StartPack(const v1::AssignmentPack& pack) override {
    Take({pack.assignments().begin(), pack.assignments().end()}, StopReason::kNone);
  }
  void Refuse(const v1::Assignment& assignment) override {
    Take({assignment}, StopReason::kPreempt);
  }
  void Stop(const v1::StopAttempt& stop) override;
  void Acknowledge(const v1::Ack& ack) override;
  void Preempt(absl::Duration grace) override;
  void SetRetryCap(absl::Duration cap) override { context_.retry_cap.Set(cap); }
  bool NextEvents(std::size_t max_bytes, v1::EventBatch* batch) override;
  bool NextLog(v1::LogChunk* chunk) override;
  bool Idle() override;

  // Ends every trainer because the daemon ends: SIGTERM now, SIGKILL after `grace`.
  void Shutdown(absl::Duration grace);
  // The longest last epoch of the attempts that run; zero if none of them has ended an epoch.
  absl::Duration LongestEpoch() const;
  // True if no attempt has anything left to do here. Events may still wait for an acknowledgement.
  bool AllEnded();

 private:
  struct Entry {
    std::shared_ptr<Attempt> attempt;
    std::shared_ptr<TrainerRun> run;  // null if there is nothing to train any more
    bool may_send = false;            // the coordinator has said from which event to go on
    bool dropped = false;             // superseded: removed as soon as it has ended
    bool interrupted = false;         // from an earlier daemon, not ended yet
    std::uint64_t sent = 0;           // the last sequence number sent on this connection
  };

  Supervisor(AttemptContext context, std::vector<SlotPlan> plans, Pipe parent_pipe);
  Entry* Find(std::int64_t attempt_id, std::uint64_t token);
  static bool IsAcknowledged(const Entry& entry);
  static void StopOne(Entry& entry, StopReason reason, absl::Duration grace);
  void Take(const std::vector<v1::Assignment>& assignments, StopReason reason);
  absl::Status Admit(const v1::Assignment& assignment);
  void Launch(const std::vector<v1::Assignment>& together, StopReason reason);
  void AdmitDeferred();
  void RecoverOne(std::int64_t attempt_id);
  void Resume(Entry* entry);
  void Drop(Entry* entry);
  void Reap();
  void Forget(Attempt& attempt);
  bool IsUsed(const std::string& job_dir, std::int64_t but_attempt) const;
  void StopAll(StopReason reason, absl::Duration grace);

  AttemptContext context_;
  const std::vector<SlotPlan> plans_;
  Pipe parent_pipe_;
  std::map<std::int64_t, Entry> entries_;
  // Assignments that wait for room on the disk. They are reported as held meanwhile, so that the
  // coordinator does not count them as lost.
  std::map<std::int64_t, v1::Assignment> deferred_;
  absl::Duration tried_deferred_;
};

}  // namespace pelab::agent
