// The wire's enumerations as values of core/state, and back. Pure functions.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "core/state/state.h"
#include "pelab/v1/common.pb.h"
#include "pelab/v1/fleet.pb.h"

namespace pelab::event {

// nullopt if the attempt has not ended, or ended in a way that this version does not know.
constexpr std::optional<state::Outcome> OutcomeOf(v1::AttemptOutcome outcome) {
  if (outcome < v1::ATTEMPT_OUTCOME_SUCCEEDED || outcome > v1::ATTEMPT_OUTCOME_SUPERSEDED) {
    return std::nullopt;
  }
  return static_cast<state::Outcome>(outcome - v1::ATTEMPT_OUTCOME_SUCCEEDED);
}
static_assert(OutcomeOf(v1::ATTEMPT_OUTCOME_FAILED) == state::Outcome::kFailed);
static_assert(OutcomeOf(v1::ATTEMPT_OUTCOME_LOST) == state::Outcome::kLost);
static_assert(OutcomeOf(v1::ATTEMPT_OUTCOME_PREEMPTED) == state::Outcome::kPreempted);
static_assert(OutcomeOf(v1::ATTEMPT_OUTCOME_CANCELLED) == state::Outcome::kCancelled);
static_assert(OutcomeOf(v1::ATTEMPT_OUTCOME_SUPERSEDED) == state::Outcome::kSuperseded);

// The two enumerations of error kinds have the same numbers.
constexpr v1::ErrorKind ToProto(state::ErrorKind kind) { return static_cast<v1::ErrorKind>(kind); }
// kNone if this version does not know the kind.
constexpr state::ErrorKind ErrorKindOf(v1::ErrorKind kind) {
  const bool known = kind >= v1::ERROR_KIND_UNSPECIFIED && kind <= v1::ERROR_KIND_STALLED;
  return known ? static_cast<state::ErrorKind>(kind) : state::ErrorKind::kNone;
}
static_assert(ToProto(state::ErrorKind::kNone) == v1::ERROR_KIND_UNSPECIFIED);
static_assert(ToProto(state::ErrorKind::kBadSpec) == v1::ERROR_KIND_BAD_SPEC);
static_assert(ToProto(state::ErrorKind::kOutOfMemory) == v1::ERROR_KIND_OUT_OF_MEMORY);
static_assert(ToProto(state::ErrorKind::kNonFiniteLoss) == v1::ERROR_KIND_NON_FINITE_LOSS);
static_assert(ToProto(state::ErrorKind::kIo) == v1::ERROR_KIND_IO);
static_assert(ToProto(state::ErrorKind::kInternal) == v1::ERROR_KIND_INTERNAL);
static_assert(ToProto(state::ErrorKind::kTrainerDied) == v1::ERROR_KIND_TRAINER_DIED);
static_assert(ToProto(state::ErrorKind::kStalled) == v1::ERROR_KIND_STALLED);

// A drain as the database and the wire's answers spell it: "finish", "checkpoint", "kill"; "" if
// the worker accepts jobs.
std::string NameOf(v1::Drain::Mode drain);
// nullopt if no drain is spelled so.
std::optional<v1::Drain::Mode> ParseDrain(std::string_view name);

}  // namespace pelab::event
