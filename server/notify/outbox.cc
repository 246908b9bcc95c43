#include "server/notify/outbox.h"

#include <algorithm>
#include <utility>

namespace pelab::notify {

Outbox::Outbox(const Clock& clock, std::function<double()> unit_random)
    : clock_(clock), backoff_(absl::Seconds(2), absl::Minutes(1), std::move(unit_random)) {}

bool Outbox::Add(Message message) {
  if (waiting_.size() >= kMostWaiting) return false;
  waiting_.push_back(std::move(message));
  return true;
}

absl::Duration Outbox::Wait() const {
  if (waiting_.empty()) return absl::InfiniteDuration();
  return std::max(due_ - clock_.Monotonic(), absl::ZeroDuration());
}

void Outbox::Next() {
  waiting_.pop_front();
  tries_ = 0;
  due_ = -absl::InfiniteDuration();
  backoff_.Reset();
}

void Outbox::Delivered() { Next(); }

bool Outbox::Failed() {
  if (++tries_ == kTries) {
    Next();
    return false;
  }
  due_ = clock_.Monotonic() + backoff_.Next();
  return true;
}

}  // namespace pelab::notify
