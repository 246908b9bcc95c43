#include "server/backups/schedule.h"

#include <algorithm>
#include <utility>

namespace pelab::backups {

Schedule::Schedule(const Clock& clock, absl::Duration every, std::optional<absl::Time> newest,
                   std::function<double()> unit_random)
    : clock_(clock),
      every_(every),
      began_(clock.Monotonic()),
      due_(began_),
      backoff_(std::min(every, absl::Minutes(1)), std::min(every, absl::Hours(1)),
               std::move(unit_random)) {
  if (!newest) return;
  const absl::Duration age = clock.Wall() - *newest;
  if (age >= absl::ZeroDuration()) due_ = began_ + std::max(every - age, absl::ZeroDuration());
}

absl::Duration Schedule::Wait() const {
  return std::max(due_ - clock_.Monotonic(), absl::ZeroDuration());
}

void Schedule::Begin() { began_ = clock_.Monotonic(); }

void Schedule::Succeeded() {
  due_ = began_ + every_;
  backoff_.Reset();
}

absl::Duration Schedule::Failed() {
  const absl::Duration pause = backoff_.Next();
  due_ = clock_.Monotonic() + pause;
  return pause;
}

}  // namespace pelab::backups
