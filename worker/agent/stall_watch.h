// Decides when a silent trainer counts as hung. No I/O and no clock: the caller passes the times.
#pragma once

#include <optional>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "core/event/trainer_line.h"

namespace pelab::agent {

// Not thread-safe.
class StallWatch {
 public:
  // With a `timeout` of nullopt the trainer's own pace sets the limit: 10 minutes until its hello,
  // then max(10 minutes, 20 x the longest epoch or analysis so far) between two events. An infinite
  // timeout means that the watch never reports a stall.
  StallWatch(std::optional<absl::Duration> timeout, absl::Duration now);

  // The trainer has printed an event.
  void OnEvent(const event::TrainerLine& line, absl::Duration now);

  // Adds the time since the last call to the silence. Returns how long to wait at most before the
  // next call. Silence counts only while `listening` is true, and not while this process was
  // stopped or its host slept. DEADLINE_EXCEEDED if the trainer has stalled; its message is written
  // for people.
  absl::StatusOr<absl::Duration> Look(absl::Duration now, bool listening);

 private:
  absl::Duration Limit() const;
  absl::Duration Tick() const;

  const std::optional<absl::Duration> timeout_;
  absl::Duration last_event_;
  absl::Duration last_look_;
  absl::Duration silence_;
  absl::Duration longest_;  // the longest epoch or analysis so far
  const char* longest_name_ = nullptr;
  bool said_hello_ = false;
};

}  // namespace pelab::agent
