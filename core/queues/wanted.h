// How many allocations a queue needs. Pure functions: thread-safe.
#pragma once

#include <cstdint>

#include "core/queues/queue.h"

namespace pelab::queues {

struct Demand {
  std::int64_t waiting_jobs = 0;
  std::int64_t free_slots = 0;
};

// How many allocations a queue wants beyond those that wait or start: enough slots for the jobs
// that wait, `pack` jobs a slot, less the slots that are free or `coming` already.
int Wanted(const Queue& queue, const Demand& demand, int coming);

// How many of the wanted allocations the queue's limits let it submit now; 0 or more. `active`
// counts those that wait, start, run or end, and `waiting` those of them that wait.
int MaySubmit(const Queue& queue, int wanted, int waiting, int active);

}  // namespace pelab::queues
