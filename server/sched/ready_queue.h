// The jobs that wait for a slot: by priority, then fairly between sweeps, then in a sweep's order. A
// job that several sweeps claim stands in the line of each, and leaves all of them with the first
// that gets it a slot: so it goes with the most urgent of them that is not paused, and neither a
// pause nor a new priority touches a single job. Not thread-safe.
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
  // Adds the job, or moves it where the queue has it already.
  void Add(const store::ReadyJob& job);
  // False where it is not here.
  bool Remove(std::int64_t job_id);
  bool Contains(std::int64_t job_id) const { return places_.count(job_id) != 0; }

  // How a sweep stands from now on; until then it has priority 0 and is not paused.
  void SetStanding(const store::SweepStanding& standing);
  bool IsPaused(std::int64_t sweep_id) const;
  // The sweep claims nothing any more: jobs that no other claims go with it.
  void Forget(std::int64_t sweep_id);

  // The job that is next among those whose requirement passes `fits`, taken out; its `sweep_id` is
  // the sweep that gets it. Of the sweeps of the highest priority the one with the fewest jobs
  // running (`running`) comes first.
  using Fits = std::function<bool(const store::Requirement&)>;
  std::optional<store::ReadyJob> Pick(const Fits& fits,
                                      const std::function<int(std::int64_t sweep_id)>& running);
  // Takes out up to `most` further jobs that one trainer may take with `picked`, which Pick has just
  // answered: of the same sweep and requirement, those that follow it without another between. A
  // sweep's seeds vary fastest, so they do; what it looks at is what it takes, and one more.
  std::vector<store::ReadyJob> PickAlike(const store::ReadyJob& picked, std::size_t most);
  // How many jobs wait that pass `fits`. A job is counted once however many sweeps claim it; where
  // some of those that share jobs are paused, it may be more than wait.
  std::size_t Waiting(const Fits& fits) const;

  // No sweep that is not paused has a job here.
  bool empty() const { return lines_.empty(); }
  std::size_t size() const { return places_.size(); }
  // Every kind of requirement that the sweep's jobs here have.
  std::vector<store::Requirement> RequirementsOf(std::int64_t sweep_id) const;

 private:
  using Entry = std::pair<std::int64_t, std::int64_t>;  // ordinal, job
  // Jobs of one requirement share it: a sweep of a million jobs has a handful.
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
  std::set<std::string> executions_;                // a handful
  std::unordered_map<std::int64_t, Sweep> sweeps_;  // with jobs here, or a standing of their own
  // The sweeps with jobs that are not paused, by priority.
  std::map<int, std::set<std::int64_t>, std::greater<>> lines_;
  Places places_;
  std::map<const store::Requirement*, std::size_t> counts_;  // of places_, none 0
};

}  // namespace pelab::sched
