// Decides which job runs where, and how long the attempts of a silent worker are kept. It lives on
// one executor and does no I/O: it asks the journal to write, reacts to what was stored, and sends
// messages to workers over links. At start its state is rebuilt from the database
// (store::Store::Recover).
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
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "core/base/clock.h"
#include "core/base/log_scope.h"
#include "server/sched/accounts.h"
#include "server/sched/allowance.h"
#include "server/sched/capabilities.h"
#include "server/sched/executor.h"
#include "server/sched/ready_queue.h"
#include "server/store/journal.h"

namespace pelab::sched {

// The pause after the database refused a write.
inline constexpr absl::Duration kAfterRefusedWrite = absl::Seconds(1);
// The longest pause after the database refused the same job's assignment again and again.
inline constexpr absl::Duration kMostAfterRefusedWrite = absl::Minutes(1);

// The scheduler keeps the loads of at most so many devices of one worker, and so many kinds of its
// GPUs' errors.
inline constexpr std::size_t kSeriesOfWorker = 64;

enum class StopReason { kCancelled, kSuperseded };

// A link to one connected worker. Thread-safe; never blocks.
class WorkerLink {
 public:
  virtual ~WorkerLink() = default;
  virtual void SendAssignment(const store::Assignment& assignment) = 0;
  // Sends attempts of one slot, for jobs of one configuration, to be run by one trainer.
  virtual void SendPack(const std::vector<store::Assignment>& assignments) = 0;
  virtual void SendStop(std::int64_t attempt_id, std::uint64_t token, StopReason reason) = 0;
  virtual void SendDrain(v1::Drain::Mode drain) = 0;
  // Ends the stream with this status.
  virtual void Close(const absl::Status& status) = 0;
};

struct WorkerInfo {
  std::string worker_id;
  std::string name;  // as people see it: the name that the worker was given, or its host
  std::vector<Slot> slots;
  Capabilities capabilities;
  v1::Drain::Mode drain = v1::Drain::RESUME;
  // The worker's remaining time when it connected; infinite if it has no time limit. The worker
  // returns unfinished attempts `margin` before its time ends, or two epochs before, if that is
  // earlier.
  absl::Duration time_left = absl::InfiniteDuration();
  absl::Duration margin;
};

// Load of one of a worker's GPUs, as last reported.
struct DeviceLoad {
  std::string device;               // "cuda:0"
  std::optional<int> busy_percent;  // nullopt: the device does not report it
  std::uint64_t memory_used = 0;    // bytes
  std::uint64_t memory_total = 0;
  std::optional<double> energy_joules;  // since its driver was loaded
};

// How often a GPU's driver has reported an error since the worker started.
struct GpuErrors {
  std::string device;     // "cuda:0"
  std::uint64_t xid = 0;  // NVIDIA's number; 0: a memory error that was not corrected
  std::uint64_t times = 0;
};

// The current status of a worker, for display.
struct WorkerStatus {
  struct Lease {
    std::int64_t attempt_id = 0;
    std::int64_t job_id = 0;
    int slot = 0;
    absl::Duration age;   // since the lease was given or renewed
    absl::Duration left;  // until the attempt is lost
  };
  std::string worker_id;
  bool connected = false;
  absl::Duration silent;                       // since the worker was last heard from
  std::optional<absl::Duration> give_up_left;  // until the first of its attempts is lost
  absl::Duration quarantine_left;              // 0: not in quarantine
  std::vector<Lease> leases;                   // ordered by attempt
  std::vector<DeviceLoad> loads;            // from its last heartbeat; empty if it is not connected
  std::optional<absl::Duration> time_left;  // set if it is connected and has a time limit
};

// Figures of the scheduler for metrics, at one moment. A value.
struct SchedulerFigures {
  struct Slots {  // of connected workers
    std::size_t busy = 0;
    std::size_t free = 0;
    std::size_t closed = 0;  // neither: the worker drains, is in quarantine, silent or about to end
  };
  struct Worker {
    std::string name;  // no two workers have the same
    bool connected = false;
    bool quarantined = false;
    std::vector<DeviceLoad> loads;  // as in WorkerStatus
    std::vector<GpuErrors> errors;  // likewise
  };
  std::map<std::string, Slots> slots;  // by kind of device: cpu, gpu
  // Jobs that wait and that no pause, limit or back-off holds, by the kind that they need: any,
  // cpu, gpu.
  std::map<std::string, std::size_t> waiting;
  std::vector<Worker> workers;  // those that are connected or have attempts
  // GPU seconds that each principal was charged for its attempts that have ended. Attempts without
  // an owner are charged to nobody.
  std::map<std::string, double> gpu_seconds;
};

// An attempt that has ended.
struct EndedAttempt {
  const store::Assignment& assignment;
  std::int64_t sweep_id = 0;  // for which it ran; 0: no sweep claims its job any more
  std::string worker_id;
  std::string worker;  // as people see it
  state::Outcome outcome = state::Outcome::kLost;
  state::ErrorKind error = state::ErrorKind::kNone;
  // How long its job had waited before; zero if that was before this coordinator started.
  absl::Duration waited;
};

struct SchedulerOptions {
  absl::Duration lease = absl::Seconds(20);
  // A failure within this time after the attempt's start counts towards quarantine.
  absl::Duration fast_failure = absl::Seconds(60);
  int quarantine_after = 3;  // fast failures of different jobs in a row
  absl::Duration quarantine = absl::Minutes(10);
  // An attempt is lost after this time without progress, even if its worker still renews the lease.
  // Progress is an event with EventStored::advanced, of this attempt or of another one on the slot.
  absl::Duration longest_silence = absl::InfiniteDuration();
  std::function<std::uint64_t()> token;  // returns a new fencing token, never 0
  // Returns the span of a new attempt, 16 hexadecimal digits. Null: attempts belong to no trace.
  std::function<std::string()> span;
  // Called with the time that a job has waited in the queue when its assignment is stored. May be
  // null.
  std::function<void(absl::Duration waited)> on_dispatch;
  // Called when an attempt has ended in the database. May be null.
  std::function<void(const EndedAttempt& ended)> on_ended;
  // Called when a principal has used its budget of GPU seconds, so that none of its jobs starts any
  // more. May be null.
  std::function<void(const Account& account)> on_spent;
  // Called when a worker is put into quarantine for `length`, but not if it is in quarantine
  // already. May be null.
  std::function<void(const std::string& worker_id, const std::string& name, absl::Duration length)>
      on_quarantine;
};

class Scheduler {
 public:
  Scheduler(const Clock& clock, Executor& executor, store::Journal& journal,
            SchedulerOptions options);

  // Starts the periodic check of leases. Call once, after the calls of AddReady and RecoverOpen.
  void Start();

  // Adds a job that may run now, or after its back-off.
  void AddReady(const store::ReadyJob& job);
  // Adds an attempt that was open when the coordinator started. It gets one fresh lease.
  void RecoverOpen(const store::OpenAttempt& open);

  // A worker has connected: its hello is stored, and `held` are the attempts that the database
  // accepted. An older connection of the same worker is closed.
  void Connected(WorkerInfo worker, std::shared_ptr<WorkerLink> link,
                 const std::vector<store::Held>& held);
  void Heartbeat(const std::string& worker_id, const WorkerLink* link,
                 const std::vector<store::Held>& held);
  // Keeps the current load of the worker's GPUs for Workers(), and their errors for Figures().
  // `loads` has at most one entry per device; `errors` has at most one per device and number. Each
  // new device, and each new pair of device and number, adds a Prometheus time series. So at most
  // kSeriesOfWorker devices and kSeriesOfWorker pairs are kept per worker.
  void SetLoads(const std::string& worker_id, const WorkerLink* link, std::vector<DeviceLoad> loads,
                std::vector<GpuErrors> errors);
  // The worker's stream has ended. Its attempts stay until their leases run out.
  void Disconnected(const std::string& worker_id, const WorkerLink* link);
  // The worker is ending and holds no attempts.
  void Goodbye(const std::string& worker_id, const WorkerLink* link);

  // Declares the workers with this display name gone; `why` is for messages. Closes their
  // connections and ends their attempts at once: as lost if the worker has reported them, otherwise
  // as preempted, which counts as no loss. Returns the number of these attempts. An attempt that is
  // still being stored ends later and is not counted. If such a worker is alive, it connects again
  // and is told to drop its attempts.
  int WorkerGone(const std::string& name, const std::string& why);

  // Results of writes about attempts, sweeps and cancellations.
  void Stored(const store::EventStored& event);
  void Expanded(const store::SliceStored& slice);
  void Cancelled(const store::Cancelled& cancelled);
  // A sweep was paused, resumed, or got another priority.
  void SetSweepSettings(const store::SweepSettings& settings);
  // Sets what a principal may use. To be called for every principal at start and after each change
  // of one. Lower limits end nothing that runs.
  void SetPrincipal(const std::string& name, const Allowance& allowance);
  // The worker stops accepting jobs, or (RESUME) accepts them again.
  void Drain(const std::string& worker_id, v1::Drain::Mode drain);

  // Tells whether writes can be stored. During an outage the coordinator refuses workers through no
  // fault of theirs, so no lease expires. When writes work again, every lease is extended by the
  // length of the outage, but to at most one full lease from that moment.
  void StorageWorks(bool works);

  // Why queued jobs of the sweep do not start, in words; "paused" for each paused sweep. Empty if
  // they only wait for other jobs of their own sweep and no limit of its owner holds them, or if
  // none are queued.
  std::string WaitingReason(std::int64_t sweep_id) const;

  // Every worker that has connected, or had an open attempt, since this coordinator started.
  // Ordered by id.
  std::vector<WorkerStatus> Workers() const;

  // How many waiting jobs a slot like this one could run, and how many free slots of its device
  // kind can run one of them (any, if no job waits). The abilities of its trainer count as unknown.
  struct Demand {
    std::size_t waiting_jobs = 0;
    std::size_t free_slots = 0;
  };
  Demand DemandFor(const Slot& slot) const;

  SchedulerFigures Figures() const;

  // Handles leases that have run out and back-offs that have ended. Called by the timer.
  void Tick();

 private:
  struct Attempt {
    store::ReadyJob job;
    store::Assignment assignment;
    std::string worker_id;
    absl::Duration began;
    absl::Duration lease_end;
    absl::Duration reported;  // when the last event advanced it; at first, when it began
    // The attempt's end, if it is decided but not stored yet: its reason and its event. An empty
    // reason means that no end is pending.
    std::string pending_error;
    state::Event pending_end = state::Event::kLose;
    bool started = false;    // its worker has reported something about it
    bool cancelled = false;  // its job is cancelled; the worker must stop it
    // The attempt has ended in the database. Its slot is not free until the worker gives up the
    // attempt.
    bool ended = false;
    bool ending = false;     // an EndAttempt is queued
    bool left_over = false;  // its daemon died, and its trainer has ended
    bool drained = false;    // its worker was asked to give it back
    // The first job of the pack with which the attempt was sent; the attempt's own job if it was
    // sent alone.
    std::int64_t first_of_pack = 0;
    Account* account = nullptr;  // pays for it; never null
  };
  // How many attempts each slot holds; no entry: the slot is free.
  using Slots = std::map<int, int>;
  struct Worker {
    WorkerInfo info;
    std::shared_ptr<WorkerLink> link;  // null: the worker is not connected
    Slots taken;                       // attempts by slot, including those that are being stored
    Slots planned;                     // the part of `taken` that is being stored
    std::set<std::int64_t> attempts;   // keys of its entries in attempts_
    std::vector<DeviceLoad> loads;
    std::set<std::string> devices;  // that it has ever reported a load of
    std::set<std::pair<std::string, std::uint64_t>> error_kinds;  // device and number, likewise
    std::vector<GpuErrors> errors;
    absl::Duration time_over = absl::InfiniteDuration();  // monotonic
    absl::Duration heard;  // when the worker was last heard from, as seen by this process
    absl::Duration seen_written;
    // Configurations whose seeds train faster one after another; this worker measured it.
    std::set<std::int64_t> better_alone;
    // Jobs with fast failures since the last success. A pack counts as its first job.
    std::set<std::int64_t> fast_failures;
    absl::Duration quarantined_until = -absl::InfiniteDuration();
    bool leaving = false;  // it gave a running job back, so it gets no more until its next hello
    // A lease ran out and nothing has been heard since, so it gets no more jobs until then.
    bool silent = false;
    // Why the worker left: it ended, or it was declared gone. Empty if it did not leave or came
    // back.
    std::string gone;
  };
  struct Planned {  // an assignment that is being stored
    store::ReadyJob job;
    std::string worker_id;
    int slot = 0;
    std::size_t group = 0;  // assignments that are sent to the worker together have the same number
    Account* account = nullptr;  // pays for it; never null
  };
  struct FreeSlot {
    Worker* worker = nullptr;
    const Slot* slot = nullptr;
  };
  // One round of giving jobs to slots.
  struct Round {
    std::vector<FreeSlot> free;
    // For each requirement, indexed by i: how many of the slots free[i], free[i+1], … can run it.
    std::map<store::Requirement, std::vector<std::size_t>> able;
    std::vector<store::Write> writes;
    std::vector<Planned> plans;
    // Unix milliseconds, one value for the whole round. The store uses it to recognize attempts
    // that were sent together.
    std::int64_t now = 0;
  };

  void ScheduleTick();
  void StoodStill(absl::Duration time);
  void Prolong(absl::Duration outage);
  void GiveUpExpired();
  std::vector<std::int64_t> Expired();
  void GiveUpSilent();
  void ProbeStorage(const std::string& worker_id);
  void Heard(Worker& worker);
  void EndGone(std::int64_t attempt_id, const std::string& why);
  int EndAll(Worker& worker, const std::string& why);
  void AddReady(const store::ReadyJob& job, std::int64_t now_ms);
  void Delay(const store::ReadyJob& job, absl::Duration until);
  void DropDelayed(std::int64_t job_id);
  void WantDispatch();
  void Dispatch();
  std::vector<FreeSlot> FreeSlots();
  void PlanFor(std::size_t index, Round& round);
  std::vector<store::ReadyJob> Companions(std::size_t index, const store::ReadyJob& picked,
                                          const ReadyQueue::Fits& fits, Round& round);
  void Plan(const FreeSlot& free, store::ReadyJob job, std::size_t group, Round& round);
  std::size_t Share(std::size_t index, const store::Requirement& requirement,
                    const ReadyQueue::Fits& fits, Round& round) const;
  void OnPlansStored(std::vector<Planned> plans,
                     absl::StatusOr<std::vector<store::ApplyResult>> results);
  void OnNotStored(const Planned& plan, bool itself);
  void OnRefused(const Planned& plan, const store::AttemptCreated& refused);
  Attempt& Launch(const Planned& plan, store::Assignment assignment);
  void Send(std::vector<std::int64_t> together);
  bool TakeBackFromUnable(std::int64_t attempt_id);
  void PutBack(const Planned& plan);
  static void Add(Slots& slots, int slot) { slots[slot] += 1; }
  static void Subtract(Slots& slots, int slot);
  void Renew(Attempt& attempt);
  void End(std::int64_t attempt_id, state::Event event, std::string error);
  static LogIds IdsOf(const Attempt& attempt);
  void OnEnded(std::int64_t attempt_id, const store::JobChange& change);
  void TellEnded(const Attempt& attempt, state::Outcome outcome, state::ErrorKind error) const;
  void Release(std::int64_t attempt_id);
  void MeasureBudgets();
  static double GpuSeconds(const Worker& worker, const Attempt& attempt, absl::Duration now);
  void CountFailure(Worker& worker, const Attempt& attempt, const store::JobChange& change);
  std::string WhyNowhere(const store::Requirement& requirement) const;
  std::string NameOf(const std::string& worker_id) const;
  void SetName(Worker& worker, const std::string& name);
  bool Quarantined(const Worker& worker) const;
  bool TakesJobs(const Worker& worker) const;
  // Whether an epoch of this length would end before the worker must return its attempts. Zero
  // asks whether the worker has any time left at all.
  bool HasTime(const Worker& worker, absl::Duration epoch) const;
  std::optional<store::ReadyJob> PickInTime(const FreeSlot& free, const ReadyQueue::Fits& fits,
                                            const ReadyQueue::Running& running);
  std::string WhyNoTime(const std::vector<store::Requirement>& requirements) const;
  absl::Duration LastEpoch(const store::ReadyJob& job, const Slot& slot) const;
  void KeepEpoch(const Attempt& attempt, double seconds);
  bool OthersWork() const;  // whether some worker accepts jobs and is not in quarantine
  void Seen(Worker& worker, const std::string& state);
  void Write(store::Write write);
  Worker* Find(const std::string& worker_id, const WorkerLink* link);

  const Clock& clock_;
  Executor& executor_;
  store::Journal& journal_;
  const SchedulerOptions options_;

  Accounts accounts_;
  ReadyQueue ready_{accounts_};
  using Delayed = std::multimap<absl::Duration, store::ReadyJob>;
  Delayed delayed_;
  std::unordered_map<std::int64_t, Delayed::iterator> delayed_jobs_;
  std::map<std::int64_t, Attempt> attempts_;
  std::map<std::string, Worker> workers_;
  std::unordered_map<std::string, int> named_;  // how many of the workers have each name
  // How long the last epoch of a configuration took, by the kind of its device.
  std::map<std::pair<std::int64_t, std::string>, absl::Duration> last_epochs_;
  // Number of attempts by sweep, including those being stored.
  std::map<std::int64_t, int> running_;
  // Attempts that were lost here but may still run on their worker.
  std::set<std::int64_t> given_up_;
  std::deque<std::int64_t> given_up_order_;
  bool dispatch_wanted_ = false;
  // The pause before a job's assignment is stored again, for jobs whose last one was refused.
  std::unordered_map<std::int64_t, absl::Duration> refused_pauses_;
  bool storage_works_ = true;
  absl::Duration storage_failed_;  // since when it does not work
  absl::Duration probed_ = -absl::InfiniteDuration();
};

}  // namespace pelab::sched
