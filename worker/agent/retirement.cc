#include "worker/agent/retirement.h"

#include <algorithm>

namespace pelab::agent {

Retirement::Retirement(const RetirementLimits& limits, absl::Duration now)
    : idle_exit_(limits.idle_exit),
      end_(now + limits.time_limit),
      margin_(std::min(limits.margin, limits.time_limit / 2)),
      next_look_(now) {}

v1::Goodbye::Reason Retirement::Look(absl::Duration now, bool busy, absl::Duration longest_epoch) {
  if (busy || !idle_since_) idle_since_ = now;
  const absl::Duration give_back = end_ - std::max(margin_, 2 * longest_epoch);
  const absl::Duration idle_end = *idle_since_ + idle_exit_;
  if (now >= give_back) return v1::Goodbye::TIME_LIMIT;
  if (!busy && now >= idle_end) return v1::Goodbye::IDLE;
  next_look_ = std::min(give_back, idle_end);
  return v1::Goodbye::REASON_UNSPECIFIED;
}

}  // namespace pelab::agent
