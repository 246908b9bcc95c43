// What this program knows of a queue (core/queues), and how its workers are called.
#pragma once

#include <string>

#include "core/queues/queue.h"
#include "core/queues/wanted.h"

namespace pelab::scale {

using queues::Demand;
using queues::Queue;
using queues::Wanted;

// How the name of the worker of an allocation begins: "pelab-gpu-", then the allocation's number.
inline std::string WorkerPrefix(const Queue& queue) { return "pelab-" + queue.name + "-"; }

}  // namespace pelab::scale
