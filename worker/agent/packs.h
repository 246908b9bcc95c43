// Which of the attempts that come together one trainer takes. Pure.
#pragma once

#include <vector>

#include "pelab/v1/fleet.pb.h"

namespace pelab::agent {

// Groups of attempts, in their order. Of one group are those that compute alike, which is those that
// began alike, or have not begun: each at its own job, and of a batch of K seeds at most K. What has
// nothing to train goes alone.
std::vector<std::vector<v1::Assignment>> ByTrainer(const std::vector<v1::Assignment>& assignments);

}  // namespace pelab::agent
