// The state machine of jobs and attempts: pure functions over values, no I/O, no clock. The whole
// table of transitions is `Next`; the store applies what it answers and nothing else changes a
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
// How far the open attempt has brought its job.
enum class Progress {
  kNone,      // nothing of it is stored
  kWaited,    // nothing of it is stored: its trainer was at other jobs, which came with it
  kRepeated,  // only epochs that earlier attempts had reached too
  kAdvanced,  // an epoch beyond those of all earlier attempts, or an analysis
};

// The names that the database and the JSON use: "queued", "succeeded", "out_of_memory".
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
// Invalid specs, out of memory and non-finite losses would fail again.
constexpr bool IsRetryable(ErrorKind kind) {
  return kind != ErrorKind::kBadSpec && kind != ErrorKind::kOutOfMemory &&
         kind != ErrorKind::kNonFiniteLoss;
}

enum class Event {
  kAssign,      // an attempt is stored for a slot
  kStart,       // the attempt's trainer said hello
  kSucceed,     // the attempt finished with everything stored
  kFail,        // the attempt failed
  kLose,        // its lease ran out
  kPreempt,     // its trainer stopped with its checkpoint kept
  kStopped,     // its worker confirms a cancel
  kClaimsGone,  // no live sweep claims the job any more
  kRetry,       // a person asks for another try, or a live sweep claims a cancelled job again
  kAnalyse,     // analyses are added to a job whose training succeeded
};

// How many attempts a job may lose to its workers and to itself. Losses are counted since an attempt
// last advanced the job: the budget is for jobs that get nowhere.
struct Budgets {
  int lost = 5;
  int failed = 3;
};

// What decides a transition besides the state.
struct Facts {
  // Of kFail. Of kPreempt: kNone where its worker asked for that (it drains or ends); anything else
  // where the trainer stopped and nobody had asked it to.
  ErrorKind error = ErrorKind::kNone;
  // Training succeeded before: attempts only add analyses, and however they end, the job goes back
  // to succeeded in place of failing or being cancelled.
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
  bool back_off = false;  // queued again, but not at once
};

// The transition, or nullopt where `event` cannot happen in `from` (a late or repeated message:
// nothing changes).
std::optional<Transition> Next(JobState from, Event event, const Facts& facts);

// Delay before attempt number `failed_attempts`+1 after a failure: 1 s doubled each time, at most
// 60 s, times a jitter in [0.5, 1) drawn by the caller.
std::int64_t BackOffMilliseconds(int failed_attempts, double jitter);

}  // namespace pelab::state
