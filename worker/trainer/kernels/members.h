// Members: models of one configuration whose seeds differ, computed side by side by the same calls. Activations hold a
// member's part after the other's, parameters lie a constant stride apart; dropout has each member's own keys. What is
// computed of a member does not depend on the others.
#pragma once

#include <cstdint>

#include "worker/trainer/kernels/portable.h"

namespace pelab::trainer {

// As it stands: one.
struct Members {
  std::int64_t count = 1;             // M
  std::int64_t parameter_stride = 0;  // floats from one member's parameters to the next's
};

// Whether every member's parameters lie as the first one's do for vectors of 16 bytes.
inline bool AlignedAlike(const Members& members) {
  return members.count == 1 || members.parameter_stride % 4 == 0;
}

// A null pointer stays null.
template <class Element>
PELAB_HOST_DEVICE void Advance(Element*& at, std::int64_t by) {
  if (at != nullptr) at += by;
}

}  // namespace pelab::trainer
