// The jobs that wait for a slot: by priority, then fairly between sweeps, then in a sweep's order.
// Not thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
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

  // The job that is next among those whose requirement passes `fits`, taken out. Of the sweeps of
  // the highest priority the one with the fewest jobs running (`running`) comes first.
  std::optional<store::ReadyJob> Pick(const std::function<bool(const store::Requirement&)>& fits,
                                      const std::function<int(std::int64_t sweep_id)>& running);

  bool empty() const { return places_.empty(); }
  std::size_t size() const { return places_.size(); }
  // Every kind of requirement that the sweep's jobs here have.
  std::vector<store::Requirement> RequirementsOf(std::int64_t sweep_id) const;

 private:
  using Entry = std::pair<std::int64_t, std::int64_t>;  // ordinal, job
  // Jobs of one requirement share it: a sweep of a million jobs has a handful.
  using Lanes = std::map<const store::Requirement*, std::set<Entry>>;
  struct Place {
    int priority = 0;
    std::int64_t sweep_id = 0;
    std::int64_t ordinal = 0;
    const store::Requirement* requirement = nullptr;
  };

  const store::Requirement* Intern(const store::Requirement& requirement);

  std::set<store::Requirement> requirements_;
  std::map<int, std::map<std::int64_t, Lanes>, std::greater<>> by_priority_;
  std::unordered_map<std::int64_t, Place> places_;
};

}  // namespace pelab::sched
