// Members: models of one configuration with different seeds, computed side by side by the same
// calls. Activations hold the part of one member after that of another. Parameters have a constant
// stride from member to member. In dropout each member has its own keys. The results of a member do
// not depend on the others.
#pragma once

#include <cstdint>

#include "worker/trainer/kernels/portable.h"

namespace pelab::trainer {

// The default is one member.
struct Members {
  std::int64_t count = 1;             // M
  std::int64_t parameter_stride = 0;  // floats from one member's parameters to those of the next
};

// Whether the parameters of every member have the same alignment to 16-byte vectors as those of the
// first.
inline bool AlignedAlike(const Members& members) {
  return members.count == 1 || members.parameter_stride % 4 == 0;
}

// Advances a pointer. A null pointer stays null.
template <class Element>
PELAB_HOST_DEVICE void Advance(Element*& at, std::int64_t by) {
  if (at != nullptr) at += by;
}

}  // namespace pelab::trainer
