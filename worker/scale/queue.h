// Queues (core/queues) in this program, and the names of their workers.
#pragma once

#include <string>

#include "core/queues/queue.h"
#include "core/queues/wanted.h"

namespace pelab::scale {

using queues::Demand;
using queues::Queue;
using queues::Wanted;

// The beginning of a worker's name: "pelab-gpu-". The number of its allocation follows.
inline std::string WorkerPrefix(const Queue& queue) { return "pelab-" + queue.name + "-"; }

}  // namespace pelab::scale
