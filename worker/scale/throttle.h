// Holds a queue back after failures. No I/O and no clock: the caller passes the times.
#pragma once

#include <string>

#include "absl/time/time.h"

namespace pelab::scale {

// Not thread-safe.
class Throttle {
 public:
  // The batch system refused a submission. The next one has to wait: not at all, then 1, 15, 30 and
  // 60 minutes. After 10 refusals in a row the queue pauses.
  void Refused(const std::string& why, absl::Duration now);
  void Accepted();
  // An allocation ended without a hello of its worker. After 3 in a row the queue pauses.
  void NeverSaidHello(const std::string& id, const std::string& state);
  void SaidHello() { silent_ = 0; }

  // Empty if a submission may be tried now; otherwise why not, for people.
  std::string WhyNot(absl::Duration now) const;
  // Whether nothing may be submitted any more. It stays so: a resumed queue gets a new Throttle.
  bool paused() const { return !pause_.empty(); }
  // Why it is paused; empty: it is not.
  const std::string& pause() const { return pause_; }

 private:
  int refusals_ = 0;
  int silent_ = 0;
  absl::Duration wait_until_ = -absl::InfiniteDuration();
  std::string refusal_;
  std::string pause_;  // why; empty: there is none
};

}  // namespace pelab::scale
