// Queues of pelab-scale as JSON and for people. Pure functions: thread-safe.
#pragma once

#include <string>
#include <vector>

#include "client/terminal/style.h"
#include "core/queues/queue.h"
#include "core/queues/wanted.h"
#include "core/render/json.h"
#include "pelab/v1/allocations.pb.h"

namespace pelab::client {

// "active", "paused" or "removing".
std::string QueueState(const v1::QueueRow& queue);

// The flat members that `columns` names, then the settings and the allocations.
render::Json QueueJson(const v1::QueueRow& queue);
extern const std::vector<std::string> kQueueColumns;

// A line for each queue, and below a sentence for each that is paused or being removed.
std::string QueueTable(const std::vector<v1::QueueRow>& queues, const render::Style& style);
// A line for each allocation of a queue.
std::string AllocationTable(const v1::QueueRow& queue, const render::Style& style);

// The allocations that a queue would get now.
struct QueueWish {
  queues::Queue queue;
  queues::Demand demand;
  int coming = 0;   // slots of allocations that wait or start, of all queues of this device
  int wants = 0;    // allocations beyond those
  int submits = 0;  // of these now
  std::string why;  // why it submits fewer than it wants; may be empty
};
// The wish of each queue, given the demand for its slots. A queue whose settings this version does
// not read is left out.
std::vector<QueueWish> WishesOf(const std::vector<v1::QueueRow>& rows,
                                const std::vector<queues::Queue>& queues,
                                const std::vector<queues::Demand>& demands);
render::Json WishJson(const QueueWish& wish);
extern const std::vector<std::string> kWishColumns;
std::string WishTable(const std::vector<QueueWish>& wishes, const render::Style& style);

}  // namespace pelab::client
