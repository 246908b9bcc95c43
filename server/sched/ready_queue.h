// The jobs that wait for a slot, ordered by priority, then fairly between principals, then fairly
// between the sweeps of one principal, then by their order within a sweep. A job that several
// sweeps claim is in the queue of each of them. It leaves all of these queues when the first of the
// sweeps gets a slot for it. So it runs for the most urgent of its sweeps that is not paused and
// whose owner may start it. Single jobs need no change when a sweep is paused, when its priority
// changes, or when its owner reaches a limit. Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "server/sched/accounts.h"
#include "server/store/writes.h"

namespace pelab::sched {

class ReadyQueue {
 public:
  // `accounts` tells which principals may start jobs. It must outlive the queue.
  explicit ReadyQueue(Accounts& accounts) : accounts_(accounts), nobody_(accounts.Of("")) {}

  // Adds the job, or replaces it if the queue has it already. `waits_since` takes the place of the
  // job's own.
  void Add(const store::ReadyJob& job, absl::Duration waits_since);
  void Add(const store::ReadyJob& job) { Add(job, job.waits_since); }
  // Removes the job. False if the queue does not have it.
  bool Remove(std::int64_t job_id);
  bool Contains(std::int64_t job_id) const { return places_.count(job_id) != 0; }

  // Sets a sweep's priority, pause and owner. Before the first call a sweep has priority 0, is not
  // paused and has no owner.
  void SetSweepSettings(const store::SweepSettings& settings);
  bool IsPaused(std::int64_t sweep_id) const;
  // The account of the sweep's owner.
  Account& AccountOf(std::int64_t sweep_id) const;
  // Removes the sweep and its settings, because it has no claims any more. Also removes the jobs
  // that no other sweep claims.
  void Forget(std::int64_t sweep_id);

  // Removes and returns the next job whose requirement passes `fits`. Its `sweep_id` is the sweep
  // that gets the slot. Among the sweeps with the highest priority, those of the owner that
  // Account::ComesBefore prefers come first, and among them the one with the fewest running jobs
  // (`running`). Sweeps of owners that may not start a job are passed over.
  using Fits = std::function<bool(const store::Requirement&)>;
  using Running = std::function<int(std::int64_t sweep_id)>;
  std::optional<store::ReadyJob> Pick(const Fits& fits, const Running& running);
  // Removes up to `most` further jobs that one trainer may run together with `picked`, which Pick
  // has just returned. These are jobs of the same sweep, requirement, configuration and execution
  // that directly follow it among the sweep's jobs with this requirement. Seeds vary fastest in a
  // sweep, so such jobs do follow each other. The call looks at one job more than it takes.
  std::vector<store::ReadyJob> PickAlike(const store::ReadyJob& picked, std::size_t most);
  // How many waiting jobs pass `fits` and may start as far as limits are concerned. A job counts
  // once, however many sweeps claim it. If some sweeps that share jobs are paused, or owned by
  // principals with limits, the result may be too high.
  std::size_t Waiting(const Fits& fits) const;

  // True if no sweep has a job here, or if only paused sweeps have.
  bool empty() const { return lines_.empty(); }
  std::size_t size() const { return places_.size(); }
  // Every distinct requirement of the sweep's jobs here.
  std::vector<store::Requirement> RequirementsOf(std::int64_t sweep_id) const;

 private:
  using Entry = std::pair<std::int64_t, std::int64_t>;  // ordinal, job_id
  // Jobs with the same requirement share one object: a sweep of a million jobs has a handful of
  // them.
  using Lanes = std::map<const store::Requirement*, std::set<Entry>>;
  struct Sweep {
    int priority = 0;
    bool paused = false;
    Account* account = nullptr;  // of its owner; never null in sweeps_
    Lanes lanes;
  };
  struct Place {
    store::Claim claim;
    std::vector<store::Claim> others;
    const store::Requirement* requirement = nullptr;
    std::int64_t configuration_id = 0;
    const std::string* execution = nullptr;
    absl::Duration waits_since;
  };

  using Places = std::unordered_map<std::int64_t, Place>;
  using Candidate = std::pair<store::Claim, std::int64_t>;  // and the job_id
  // By name, so that the order is the same in every process.
  struct ByName {
    bool operator()(const Account* a, const Account* b) const { return a->name() < b->name(); }
  };
  // Sweeps of one priority, by owner; none of the sets is empty.
  using Line = std::map<const Account*, std::set<std::int64_t>, ByName>;
  using Counts = std::map<const store::Requirement*, std::size_t>;

  Sweep& SweepAt(std::int64_t sweep_id);
  static bool IsDefault(const Sweep& sweep);
  std::optional<Candidate> FirstOf(const std::set<std::int64_t>& sweeps, const Fits& fits,
                                   const Running& running) const;
  std::size_t Sum(const Counts& in_lines, const Fits& fits) const;
  const store::Requirement* Intern(const store::Requirement& requirement);
  void Enter(const store::Claim& claim, std::int64_t job_id, const store::Requirement* requirement);
  void Leave(const store::Claim& claim, std::int64_t job_id, const store::Requirement* requirement);
  void EraseAt(Places::iterator place);
  store::ReadyJob TakeOut(std::int64_t job_id, const store::Claim& claim);
  void StandInLine(std::int64_t sweep_id, const Sweep& sweep);
  void LeaveLine(std::int64_t sweep_id, const Sweep& sweep);

  Accounts& accounts_;
  Account& nobody_;  // of sweeps without an owner
  std::set<store::Requirement> requirements_;
  std::set<std::string> executions_;  // only a handful
  // Sweeps with jobs here, or with a priority, pause or owner of their own.
  std::unordered_map<std::int64_t, Sweep> sweeps_;
  // The sweeps that have jobs and are not paused, by priority.
  std::map<int, Line, std::greater<>> lines_;
  Places places_;
  // Number of jobs in places_, by requirement; never 0.
  Counts counts_;
};

}  // namespace pelab::sched
