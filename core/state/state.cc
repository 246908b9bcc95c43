#include "core/state/state.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace pelab::state {
namespace {

constexpr std::array<std::string_view, 6> kJobStates = {"queued",    "assigned", "running",
                                                        "succeeded", "failed",   "cancelled"};
constexpr std::array<std::string_view, 6> kOutcomes = {"succeeded", "failed",    "lost",
                                                       "preempted", "cancelled", "superseded"};
constexpr std::array<std::string_view, 8> kErrorKinds = {
    "none", "bad_spec", "out_of_memory", "non_finite_loss",
    "io",   "internal", "trainer_died",  "stalled"};

template <typename Enum, std::size_t N>
std::optional<Enum> Parse(const std::array<std::string_view, N>& names, std::string_view name) {
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end()) return std::nullopt;
  return static_cast<Enum>(found - names.begin());
}

Transition Keep(JobState to, std::optional<Outcome> outcome, const Facts& facts) {
  return {.to = to,
          .attempt_outcome = outcome,
          .lost_attempts = facts.lost_attempts,
          .failed_attempts = facts.failed_attempts};
}

// The state of a job that is not tried any further.
JobState GivenUp(const Facts& facts, JobState otherwise) {
  return facts.trained ? JobState::kSucceeded : otherwise;
}

// The job did not cause the loss of its attempt. So the job is queued again at once, until the
// budget for losses is spent. An attempt that advanced the job restarts the count.
Transition Lose(Outcome outcome, const Facts& facts) {
  Transition next = Keep(JobState::kQueued, outcome, facts);
  if (facts.progress == Progress::kAdvanced) next.lost_attempts = 0;
  next.lost_attempts += 1;
  if (next.lost_attempts >= facts.budgets.lost) next.to = GivenUp(facts, JobState::kFailed);
  return next;
}

Transition Fail(const Facts& facts) {
  Transition next = Keep(JobState::kQueued, Outcome::kFailed, facts);
  next.failed_attempts += 1;
  next.back_off = true;
  if (!IsRetryable(facts.error) || next.failed_attempts >= facts.budgets.failed) {
    next.to = GivenUp(facts, JobState::kFailed);
    next.back_off = false;
  }
  return next;
}

// The worker asked for the stop (it drains or ends). This counts as a loss only if nothing was
// stored although the trainer was free to run the job.
Transition PreemptInOrder(const Facts& facts) {
  if (facts.progress == Progress::kNone) return Lose(Outcome::kPreempted, facts);
  Transition next = Keep(JobState::kQueued, Outcome::kPreempted, facts);
  if (facts.progress == Progress::kAdvanced) next.lost_attempts = 0;
  return next;
}

Transition Preempt(const Facts& facts) {
  if (facts.error == ErrorKind::kNone) return PreemptInOrder(facts);
  // A trainer that stops without being asked, and without progress, would do so again in every
  // attempt.
  const bool nowhere = facts.progress == Progress::kNone || facts.progress == Progress::kRepeated;
  return nowhere ? Fail(facts) : Lose(Outcome::kPreempted, facts);
}

// A requested retry starts with fresh budgets.
Transition Retry(std::optional<Outcome> outcome) {
  return {.to = JobState::kQueued, .attempt_outcome = outcome};
}

std::optional<Transition> FromQueued(Event event, const Facts& facts) {
  if (event == Event::kAssign) return Keep(JobState::kAssigned, std::nullopt, facts);
  if (event == Event::kClaimsGone) {
    return Keep(GivenUp(facts, JobState::kCancelled), std::nullopt, facts);
  }
  return std::nullopt;
}

std::optional<Transition> FromOpen(JobState from, Event event, const Facts& facts) {
  switch (event) {
    case Event::kStart:
      if (from == JobState::kRunning) return std::nullopt;
      return Keep(JobState::kRunning, std::nullopt, facts);
    case Event::kSucceed:
      if (from == JobState::kAssigned) return std::nullopt;
      return Keep(JobState::kSucceeded, Outcome::kSucceeded, facts);
    case Event::kFail:
      return Fail(facts);
    case Event::kLose:
    case Event::kStopped:  // the coordinator did not ask for this stop: the worker gave the job up
      return Lose(Outcome::kLost, facts);
    case Event::kPreempt:
      return Preempt(facts);
    case Event::kClaimsGone:  // the slot stays occupied until the worker confirms
      return Keep(GivenUp(facts, JobState::kCancelled), std::nullopt, facts);
    case Event::kAssign:
    case Event::kRetry:
    case Event::kAnalyze:
      return std::nullopt;
  }
  return std::nullopt;
}

// A cancelled job may still have an open attempt, which ends here.
std::optional<Transition> FromCancelled(Event event, const Facts& facts) {
  switch (event) {
    case Event::kStart:
      return Keep(JobState::kCancelled, std::nullopt, facts);
    case Event::kSucceed:
    case Event::kFail:
    case Event::kPreempt:
    case Event::kStopped:
      return Keep(JobState::kCancelled, Outcome::kCancelled, facts);
    case Event::kLose:
      return Keep(JobState::kCancelled, Outcome::kLost, facts);
    case Event::kRetry:
      return Retry(Outcome::kSuperseded);
    case Event::kAssign:
    case Event::kClaimsGone:
    case Event::kAnalyze:
      return std::nullopt;
  }
  return std::nullopt;
}

// A job whose analyses were given up may still have an open attempt, which ends here.
std::optional<Transition> FromSucceeded(Event event, const Facts& facts) {
  switch (event) {
    case Event::kStart:
      return Keep(JobState::kSucceeded, std::nullopt, facts);
    case Event::kSucceed:  // the attempt finished before the request to stop arrived
      return Keep(JobState::kSucceeded, Outcome::kSucceeded, facts);
    case Event::kFail:
    case Event::kPreempt:
    case Event::kStopped:
      return Keep(JobState::kSucceeded, Outcome::kCancelled, facts);
    case Event::kLose:
      return Keep(JobState::kSucceeded, Outcome::kLost, facts);
    case Event::kAnalyze:
      return Retry(Outcome::kSuperseded);
    case Event::kAssign:
    case Event::kClaimsGone:
    case Event::kRetry:
      return std::nullopt;
  }
  return std::nullopt;
}

}  // namespace

std::string_view Name(JobState state) { return kJobStates[static_cast<std::size_t>(state)]; }
std::string_view Name(Outcome outcome) { return kOutcomes[static_cast<std::size_t>(outcome)]; }
std::string_view Name(ErrorKind kind) { return kErrorKinds[static_cast<std::size_t>(kind)]; }

std::optional<JobState> ParseJobState(std::string_view name) {
  return Parse<JobState>(kJobStates, name);
}
std::optional<Outcome> ParseOutcome(std::string_view name) {
  return Parse<Outcome>(kOutcomes, name);
}
std::optional<ErrorKind> ParseErrorKind(std::string_view name) {
  return Parse<ErrorKind>(kErrorKinds, name);
}

std::optional<Transition> Next(JobState from, Event event, const Facts& facts) {
  switch (from) {
    case JobState::kQueued:
      return FromQueued(event, facts);
    case JobState::kAssigned:
    case JobState::kRunning:
      return FromOpen(from, event, facts);
    case JobState::kCancelled:
      return FromCancelled(event, facts);
    case JobState::kFailed:
      if (event == Event::kRetry) return Retry(std::nullopt);
      return std::nullopt;
    case JobState::kSucceeded:
      return FromSucceeded(event, facts);
  }
  return std::nullopt;
}

std::int64_t BackOffMilliseconds(int failed_attempts, double jitter) {
  const int doublings = std::clamp(failed_attempts - 1, 0, 6);
  const double delay = std::min(1000.0 * static_cast<double>(1 << doublings), 60'000.0);
  return static_cast<std::int64_t>(std::llround(delay * jitter));
}

}  // namespace pelab::state
