// Which job runs where, and for how long a worker that is not heard of is believed. Lives on one
// executor and does no I/O: it asks the journal to write, reacts to what was stored, and sends to
// workers over links. What it holds is rebuilt from the database at start (store::Store::Recover).
//
// Every method must be called on the executor.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "core/base/clock.h"
#include "server/sched/capabilities.h"
#include "server/sched/executor.h"
#include "server/sched/ready_queue.h"
#include "server/store/journal.h"

namespace pelab::sched {

enum class StopReason { kCancelled, kSuperseded };

// The way to one connected worker. Thread-safe; never blocks.
class WorkerLink {
 public:
  virtual ~WorkerLink() = default;
  virtual void SendAssignment(const store::Assignment& assignment) = 0;
  // Attempts of one slot, at jobs of one configuration, for one trainer.
  virtual void SendPack(const std::vector<store::Assignment>& assignments) = 0;
  virtual void SendStop(std::int64_t attempt_id, std::uint64_t token, StopReason reason) = 0;
  // finish, checkpoint or kill (store::DrainWorker); empty: it takes jobs again.
  virtual void SendDrain(const std::string& drain) = 0;
  // Ends the stream with this status.
  virtual void Close(const absl::Status& status) = 0;
};

struct WorkerInfo {
  std::string worker_id;
  std::vector<Slot> slots;
  Capabilities capabilities;
  std::string drain;  // as stored; empty: it takes jobs
};

// A GPU of a worker, as it last said.
struct DeviceLoad {
  std::string device;               // "cuda:0"
  std::optional<int> busy_percent;  // nullopt: the device does not say
  std::uint64_t memory_used = 0;    // bytes
  std::uint64_t memory_total = 0;
};

// How a worker stands now, for people who look.
struct WorkerStanding {
  struct Lease {
    std::int64_t attempt_id = 0;
    std::int64_t job_id = 0;
    int slot = 0;
    absl::Duration age;   // since it was given or renewed
    absl::Duration left;  // until the attempt is lost
  };
  std::string worker_id;
  bool connected = false;
  absl::Duration silent;                       // since it was last heard of
  std::optional<absl::Duration> give_up_left;  // until the first of its attempts is lost
  absl::Duration quarantine_left;              // 0: it gets jobs
  std::vector<Lease> leases;                   // by attempt
  std::vector<DeviceLoad> loads;  // of its last heartbeat; of none that is not connected
};

struct SchedulerOptions {
  absl::Duration lease = absl::Seconds(20);
  // A failure within this time of the attempt's start counts towards quarantine.
  absl::Duration fast_failure = absl::Seconds(60);
  int quarantine_after = 3;  // fast failures on different jobs in a row
  absl::Duration quarantine = absl::Minutes(10);
  std::function<std::uint64_t()> token;  // fencing tokens, never 0
};

class Scheduler {
 public:
  Scheduler(const Clock& clock, Executor& executor, store::Journal& journal,
            SchedulerOptions options);

  // Begins to sweep leases; once, after the Recover… calls.
  void Start();

  // Jobs that may run now, or after their back-off.
  void AddReady(const store::ReadyJob& job);
  // An attempt that was open when the coordinator started: gets one fresh lease.
  void RecoverOpen(const store::OpenAttempt& open);

  // A worker's hello is stored; `held` are the attempts that the database accepted. An older
  // connection of the same worker is closed.
  void Connected(WorkerInfo worker, std::shared_ptr<WorkerLink> link,
                 const std::vector<store::Held>& held);
  void Heartbeat(const std::string& worker_id, const WorkerLink* link,
                 const std::vector<store::Held>& held);
  // How busy its GPUs are, for those who look (Workers).
  void SetLoads(const std::string& worker_id, const WorkerLink* link,
                std::vector<DeviceLoad> loads);
  // The stream has ended. Its attempts stay until their leases run out.
  void Disconnected(const std::string& worker_id, const WorkerLink* link);
  // The worker ends and holds nothing.
  void Goodbye(const std::string& worker_id, const WorkerLink* link);

  // What was stored of attempts, sweeps and cancels.
  void Stored(const store::EventStored& event);
  void Expanded(const store::SliceStored& slice);
  void Cancelled(const store::Cancelled& cancelled);
  // A sweep is paused, goes on, or has another priority.
  void SetStanding(const store::SweepStanding& standing);
  // A worker takes no more jobs, or (empty) takes them again.
  void Drain(const std::string& worker_id, const std::string& drain);

  // Whether what is asked of the journal can be stored. While it cannot, workers are refused that
  // have done no wrong: no lease runs out, and all are fresh once it can again.
  void StorageWorks(bool works);

  // Why the sweep's queued jobs do not start, in words; empty where they wait for jobs of their own
  // sweep only, or none are queued.
  std::string WaitingReason(std::int64_t sweep_id) const;

  // Every worker that is connected or has attempts, by its id.
  std::vector<WorkerStanding> Workers() const;

  // Leases that have run out and back-offs that have ended. Called by the timer.
  void Tick();

 private:
  struct Attempt {
    store::ReadyJob job;
    store::Assignment assignment;
    std::string worker_id;
    absl::Duration began;
    absl::Duration lease_end;
    std::string why_lost;    // where that was found, and has not been stored yet
    bool started = false;    // its worker has said something of it
    bool cancelled = false;  // its job is; the worker has to stop it
    bool ended = false;      // in the database; the slot waits for the worker to let go
    bool ending = false;     // EndAttempt is on its way
    bool left_over = false;  // of a daemon that died: its trainer has ended
    bool drained = false;    // its worker was asked to give it back
    // The first job of those that were sent together; its own where it was alone.
    std::int64_t first_of_pack = 0;
  };
  using Slots = std::map<int, int>;  // how many attempts a slot holds; none where it is not here
  struct Worker {
    WorkerInfo info;
    std::shared_ptr<WorkerLink> link;  // null: not connected
    Slots taken;                       // attempts, and those that are being stored
    Slots planned;                     // of these, the ones that are being stored
    std::set<std::int64_t> attempts;   // its entries of attempts_
    std::vector<DeviceLoad> loads;
    absl::Duration heard;  // the last time, by this process
    absl::Duration seen_written;
    // Configurations of which it has found that their seeds are trained quicker one after another.
    std::set<std::int64_t> better_alone;
    // Jobs since the last that went well; of those that one trainer took together the first.
    std::set<std::int64_t> fast_failures;
    absl::Duration quarantined_until = -absl::InfiniteDuration();
    bool leaving = false;  // it gave a running job back: it gets no more until its next hello
    bool silent = false;  // a lease ran out and nothing was heard since: it gets no more until then
  };
  struct Planned {  // an assignment that is being stored
    store::ReadyJob job;
    std::string worker_id;
    int slot = 0;
    std::size_t group = 0;  // those that go to the worker together have the same one
  };
  struct FreeSlot {
    Worker* worker = nullptr;
    const Slot* slot = nullptr;
  };
  // A round of giving jobs to slots.
  struct Round {
    std::vector<FreeSlot> free;
    // By requirement: how many of `free` from each on can run it.
    std::map<store::Requirement, std::vector<std::size_t>> able;
    std::vector<store::Write> writes;
    std::vector<Planned> plans;
    std::int64_t now = 0;  // of all of them: the store tells by it which came together
  };

  void ScheduleTick();
  std::vector<std::int64_t> Expired();
  void ProbeStorage(const std::string& worker_id);
  void Heard(Worker& worker);
  void Delay(const store::ReadyJob& job, absl::Duration until);
  void DropDelayed(std::int64_t job_id);
  void WantDispatch();
  void Dispatch();
  std::vector<FreeSlot> FreeSlots();
  void PlanFor(std::size_t index, Round& round);
  void Plan(const FreeSlot& free, store::ReadyJob job, std::size_t group, Round& round);
  std::size_t Share(std::size_t index, const store::Requirement& requirement,
                    const ReadyQueue::Fits& fits, Round& round) const;
  void OnPlansStored(std::vector<Planned> plans,
                     absl::StatusOr<std::vector<store::ApplyResult>> results);
  void OnRefused(const Planned& plan, const store::AttemptCreated& refused);
  Attempt& Launch(const Planned& plan, store::Assignment assignment);
  void Send(const std::vector<std::int64_t>& together);
  void PutBack(const Planned& plan);
  static void Add(Slots& slots, int slot) { slots[slot] += 1; }
  static void Subtract(Slots& slots, int slot);
  void Renew(Attempt& attempt);
  void End(std::int64_t attempt_id, state::Event event, std::string error);
  void OnEnded(std::int64_t attempt_id, const store::JobChange& change);
  void Release(std::int64_t attempt_id);
  void CountFailure(Worker& worker, const Attempt& attempt, const store::JobChange& change);
  std::string WhyNowhere(const store::Requirement& requirement) const;
  bool Quarantined(const Worker& worker) const;
  static bool TakesJobs(const Worker& worker);
  bool OthersWork() const;  // a worker that takes jobs and is not quarantined
  void Seen(Worker& worker, const std::string& state);
  void Write(store::Write write);
  Worker* Find(const std::string& worker_id, const WorkerLink* link);

  const Clock& clock_;
  Executor& executor_;
  store::Journal& journal_;
  const SchedulerOptions options_;

  ReadyQueue ready_;
  using Delayed = std::multimap<absl::Duration, store::ReadyJob>;
  Delayed delayed_;
  std::unordered_map<std::int64_t, Delayed::iterator> delayed_jobs_;
  std::map<std::int64_t, Attempt> attempts_;
  std::map<std::string, Worker> workers_;
  std::map<std::int64_t, int> running_;  // attempts by sweep, those being stored included
  // Attempts that were given up here while their worker may still run them.
  std::set<std::int64_t> given_up_;
  std::deque<std::int64_t> given_up_order_;
  bool dispatch_wanted_ = false;
  bool storage_works_ = true;
  absl::Duration probed_ = -absl::InfiniteDuration();
};

}  // namespace pelab::sched
