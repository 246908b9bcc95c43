// How long a trainer may say nothing before it counts as hung. No I/O, no clock: times are given.
#pragma once

#include <optional>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "worker/agent/trainer_events.h"

namespace pelab::agent {

// Not thread-safe.
class StallWatch {
 public:
  // `timeout`: nullopt: judged by the trainer's own pace, which is 10 minutes until its hello and
  // max(10 minutes, 20 x the longest epoch or analysis so far) between two events from then on. An
  // infinite one never ends.
  StallWatch(std::optional<absl::Duration> timeout, absl::Duration now);

  // An event of the trainer has come.
  void OnEvent(const TrainerLine& line, absl::Duration now);

  // Call again after at most the answered time. Silence counts only while somebody listens, and not
  // while this process was stopped or its host slept. DEADLINE_EXCEEDED says for people that the
  // trainer stalled.
  absl::StatusOr<absl::Duration> Look(absl::Duration now, bool listening);

 private:
  absl::Duration Limit() const;
  absl::Duration Tick() const;

  const std::optional<absl::Duration> timeout_;
  absl::Duration last_event_;
  absl::Duration last_look_;
  absl::Duration silence_;
  absl::Duration longest_;  // of an epoch or an analysis
  const char* longest_name_ = nullptr;
  bool said_hello_ = false;
};

}  // namespace pelab::agent
