#include "core/rpc/backoff.h"

#include <algorithm>
#include <utility>

namespace pelab::rpc {

Backoff::Backoff(absl::Duration initial, absl::Duration cap, std::function<double()> unit_random)
    : initial_(initial), cap_(cap), next_(initial), unit_random_(std::move(unit_random)) {}

absl::Duration Backoff::Next() {
  const absl::Duration base = std::min(next_, cap_);
  next_ = std::min(base * 2, cap_);
  return base * (0.5 + 0.5 * unit_random_());
}

void Backoff::Reset() { next_ = initial_; }

void Backoff::SetCap(absl::Duration cap) { cap_ = cap; }

}  // namespace pelab::rpc
