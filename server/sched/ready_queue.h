// The jobs that wait for a slot, ordered by priority, then fairly between sweeps, then by their
// order within a sweep. A job that several sweeps claim is in the queue of each of them. It leaves
// all of these queues when the first of the sweeps gets a slot for it. So it runs for the most
// urgent of its sweeps that is not paused, and pausing a sweep or changing its priority needs no
// change to single jobs. Not thread-safe.
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

#include "server/store/writes.h"

namespace pelab::sched {

class ReadyQueue {
 public:
  // Adds the job, or replaces it if the queue has it already.
  void Add(const store::ReadyJob& job);
  // Removes the job. False if the queue does not have it.
  bool Remove(std::int64_t job_id);
  bool Contains(std::int64_t job_id) const { return places_.count(job_id) != 0; }

  // Sets a sweep's priority and pause. Before the first call a sweep has priority 0 and is not
  // paused.
  void SetSweepSettings(const store::SweepSettings& settings);
  bool IsPaused(std::int64_t sweep_id) const;
  // The sweep has no claims any more. Jobs that no other sweep claims are removed.
  void Forget(std::int64_t sweep_id);

  // Removes and returns the next job whose requirement passes `fits`. Its `sweep_id` is the sweep
  // that gets the slot. Among the sweeps with the highest priority, the one with the fewest running
  // jobs (`running`) comes first.
  using Fits = std::function<bool(const store::Requirement&)>;
  std::optional<store::ReadyJob> Pick(const Fits& fits,
                                      const std::function<int(std::int64_t sweep_id)>& running);
  // Removes up to `most` further jobs that one trainer may run together with `picked`, which Pick
  // has just returned. These are jobs of the same sweep, requirement, configuration and execution
  // that directly follow it. Seeds vary fastest in a sweep, so such jobs do follow each other. The
  // call looks at one job more than it takes.
  std::vector<store::ReadyJob> PickAlike(const store::ReadyJob& picked, std::size_t most);
  // How many waiting jobs pass `fits`. A job counts once, however many sweeps claim it. If some
  // sweeps that share jobs are paused, the result may be too high.
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
    Lanes lanes;
  };
  struct Place {
    store::Claim claim;
    std::vector<store::Claim> others;
    const store::Requirement* requirement = nullptr;
    std::int64_t configuration_id = 0;
    const std::string* execution = nullptr;
  };

  using Places = std::unordered_map<std::int64_t, Place>;

  const store::Requirement* Intern(const store::Requirement& requirement);
  void Enter(const store::Claim& claim, std::int64_t job_id, const store::Requirement* requirement);
  void Leave(const store::Claim& claim, std::int64_t job_id, const store::Requirement* requirement);
  void EraseAt(Places::iterator place);
  store::ReadyJob TakeOut(std::int64_t job_id, const store::Claim& claim);
  void StandInLine(std::int64_t sweep_id, const Sweep& sweep);
  void LeaveLine(std::int64_t sweep_id, const Sweep& sweep);

  std::set<store::Requirement> requirements_;
  std::set<std::string> executions_;  // only a handful
  // Sweeps with jobs here, or with a priority or pause of their own.
  std::unordered_map<std::int64_t, Sweep> sweeps_;
  // The sweeps that have jobs and are not paused, by priority.
  std::map<int, std::set<std::int64_t>, std::greater<>> lines_;
  Places places_;
  // Number of jobs in places_, by requirement; never 0.
  std::map<const store::Requirement*, std::size_t> counts_;
};

}  // namespace pelab::sched
