#include <utility>

#include "client/source/data_source.h"

namespace pelab::client {

void Canceller::Cancel() {
  const std::lock_guard lock(mutex_);
  cancelled_ = true;
  if (cancel_) cancel_();
}

bool Canceller::cancelled() const {
  const std::lock_guard lock(mutex_);
  return cancelled_;
}

void Canceller::Set(std::function<void()> cancel) {
  const std::lock_guard lock(mutex_);
  cancel_ = std::move(cancel);
  if (cancelled_ && cancel_) cancel_();
}

}  // namespace pelab::client
