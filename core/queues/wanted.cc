#include "core/queues/wanted.h"

#include <algorithm>

namespace pelab::queues {
namespace {

std::int64_t DividedUp(std::int64_t number, std::int64_t by) { return (number + by - 1) / by; }

}  // namespace

int Wanted(const Queue& queue, const Demand& demand, int coming) {
  const std::int64_t slots =
      DividedUp(demand.waiting_jobs, queue.pack) - demand.free_slots - coming;
  const std::int64_t wanted = slots <= 0 ? 0 : DividedUp(slots, queue.slots);
  return static_cast<int>(std::min<std::int64_t>(wanted, queue.max_allocations));
}

int MaySubmit(const Queue& queue, int wanted, int waiting, int active) {
  return std::max(0,
                  std::min({wanted, queue.max_waiting - waiting, queue.max_allocations - active}));
}

}  // namespace pelab::queues
