// The state machine of jobs and attempts: pure functions over values, without I/O and clock. `Next`
// is the complete table of transitions. The store applies its result, and nothing else changes a
// job's state. Thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace pelab::state {

enum class JobState { kQueued, kAssigned, kRunning, kSucceeded, kFailed, kCancelled };
enum class Outcome { kSucceeded, kFailed, kLost, kPreempted, kCancelled, kSuperseded };
enum class ErrorKind {
  kNone,
  kBadSpec,
  kOutOfMemory,
  kNonFiniteLoss,
  kIo,
  kInternal,
  kTrainerDied,
  kStalled
};
// How far the open attempt has advanced its job.
enum class Progress {
  kNone,      // nothing of the attempt is stored
  kWaited,    // nothing is stored because the trainer was busy with other jobs of the same pack, or
              // because the worker ended before it had started a trainer
  kRepeated,  // only epochs that earlier attempts had reached too
  kAdvanced,  // an epoch beyond those of all earlier attempts, or an analysis
};

// The names in the database and in JSON: "queued", "succeeded", "out_of_memory".
std::string_view Name(JobState state);
std::string_view Name(Outcome outcome);
std::string_view Name(ErrorKind kind);
std::optional<JobState> ParseJobState(std::string_view name);
std::optional<Outcome> ParseOutcome(std::string_view name);
std::optional<ErrorKind> ParseErrorKind(std::string_view name);

constexpr bool IsTerminal(JobState state) {
  return state == JobState::kSucceeded || state == JobState::kFailed ||
         state == JobState::kCancelled;
}
// False for invalid specs, out of memory and non-finite losses, which would fail again.
constexpr bool IsRetryable(ErrorKind kind) {
  return kind != ErrorKind::kBadSpec && kind != ErrorKind::kOutOfMemory &&
         kind != ErrorKind::kNonFiniteLoss;
}

enum class Event {
  kAssign,      // an attempt is stored for a slot
  kStart,       // the attempt's trainer sent its hello
  kSucceed,     // the attempt finished and everything is stored
  kFail,        // the attempt failed
  kLose,        // its lease expired, or its worker is gone or lacks it
  kPreempt,     // it was given back before its end
  kStopped,     // the worker confirms that a cancelled job stopped
  kClaimsGone,  // no live sweep claims the job any more
  kRetry,       // a person requests another try, or a live sweep claims a cancelled job again
  kAnalyze,     // analyses are added to a job whose training succeeded
};

// A job is given up when this many of its attempts were lost, or when this many failed. The count
// of losses restarts when an attempt advances the job, so this budget limits only jobs without
// progress.
struct Budgets {
  int lost = 5;
  int failed = 3;
};

// The facts, besides the state, that decide a transition.
struct Facts {
  // For kFail: the error. For kPreempt: kNone if the worker asked for the stop (it drains or ends),
  // any other kind if the trainer stopped without being asked.
  ErrorKind error = ErrorKind::kNone;
  // Training has succeeded already, so attempts only add analyses. If the analyses are given up,
  // the job returns to succeeded instead of becoming failed or cancelled.
  bool trained = false;
  Progress progress = Progress::kNone;
  int lost_attempts = 0;  // before this event
  int failed_attempts = 0;
  Budgets budgets;
};

struct Transition {
  JobState to;
  std::optional<Outcome> attempt_outcome;  // how the open attempt ends; empty: it stays as it is
  int lost_attempts = 0;                   // after the event
  int failed_attempts = 0;
  bool back_off = false;  // queued again, but after a delay
};

// The transition, or nullopt if `event` cannot happen in `from`. Such an event comes from a late or
// repeated message, and changes nothing.
std::optional<Transition> Next(JobState from, Event event, const Facts& facts);

// The delay before the next attempt after `failed_attempts` failures: 1 s, doubled each time, at
// most 60 s, times a jitter in [0.5, 1) drawn by the caller.
std::int64_t BackOffMilliseconds(int failed_attempts, double jitter);

}  // namespace pelab::state
