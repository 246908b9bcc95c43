// What principals may use, and the GPU seconds that their open attempts have taken.
#include <algorithm>
#include <cstdint>
#include <map>
#include <string>

#include "server/sched/scheduler.h"

namespace pelab::sched {

void Scheduler::SetPrincipal(const std::string& name, const Allowance& allowance) {
  accounts_.Set(name, allowance);
  WantDispatch();
}

// Called once a round, because it looks at every attempt.
void Scheduler::MeasureBudgets() {
  if (!accounts_.HaveBudgets()) return;
  const absl::Duration now = clock_.Monotonic();
  std::map<const Account*, double> open;
  for (const auto& [worker_id, worker] : workers_) {
    for (const std::int64_t id : worker.attempts) {
      const Attempt& attempt = attempts_.at(id);
      open[attempt.account] += GpuSeconds(worker, attempt, now);
    }
  }
  accounts_.SetOpen(open);
  for (const Account* account : accounts_.NewlySpent()) {
    if (options_.on_spent) options_.on_spent(*account);
  }
}

// What an open attempt has taken until `now`. Attempts that share a slot divide its time. The slots
// of a worker that has not come back after a restart are not known and count nothing.
double Scheduler::GpuSeconds(const Worker& worker, const Attempt& attempt, absl::Duration now) {
  if (attempt.ended) return 0;  // it is charged already
  const int number = attempt.assignment.slot;
  const auto slot = std::find_if(worker.info.slots.begin(), worker.info.slots.end(),
                                 [number](const Slot& each) { return each.slot == number; });
  if (slot == worker.info.slots.end() || slot->device_kind == "cpu") return 0;
  const auto taken = worker.taken.find(number);
  const int sharing = taken == worker.taken.end() ? 1 : taken->second;
  return absl::ToDoubleSeconds(now - attempt.began) / sharing;
}

}  // namespace pelab::sched
