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

// If the daemon crashes, its trainers end too, because the pipe to the daemon closes. The next
// daemon recovers each attempt by what is stored about it (work_dir.h). "Reported" means that Held
// reports the attempt to the coordinator, on slot -1.
//
//   stored             recovery
//   a Finished event   reported; the events are sent again and kept until acknowledged
//   upload.json        reported; the weights are uploaded, and the attempt ends as succeeded
//   other events       reported; the attempt ends as preempted. The coordinator queues the job
//                      again at once, and the job's checkpoint is in jobs/
//   no event, or a     forgotten, not reported. The coordinator sends the attempt again or counts
//   damaged file       it as lost
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
  // The longest of the last epochs of all running attempts; zero if none of these attempts has
  // ended an epoch.
  absl::Duration LongestEpoch() const;
  // True if no attempt has anything left to do here. Events may still wait for an acknowledgement.
  bool AllEnded();

 private:
  struct Entry {
    std::shared_ptr<Attempt> attempt;
    std::shared_ptr<TrainerRun> run;  // null if there is nothing to train any more
    bool may_send = false;            // it is new, or the coordinator has said where to go on
    bool dropped = false;             // superseded or unreadable: removed when it has ended
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
