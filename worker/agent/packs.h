// Decides which attempts of a pack share one trainer. Pure.
#pragma once

#include <vector>

#include "pelab/v1/fleet.pb.h"

namespace pelab::agent {

// Splits the attempts into groups, one trainer each, and keeps their order. The attempts of a group
// are on one slot, have the same execution record (threads, micro-batch and packing of the job's
// first attempt, or none yet) and belong to different jobs. If the recorded packing is K > 1, a
// group has at most K attempts. An attempt that only analyzes kept weights gets a trainer of its
// own.
std::vector<std::vector<v1::Assignment>> ByTrainer(const std::vector<v1::Assignment>& assignments);

}  // namespace pelab::agent
