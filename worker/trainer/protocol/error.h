// The trainer's own errors. Any code may throw them. An error of one job is caught in
// command/run.cc, all others in command/boundary.cc. There they become an `error` event and an exit
// status.
#pragma once

#include <stdexcept>
#include <string>

#include "core/state/state.h"

namespace pelab::trainer {

// The trainer uses the kinds from kBadSpec to kInternal. Their names are the values of `kind` in an
// `error` event (docs/formats.md).
using state::ErrorKind;

// `what()` is one lower-case sentence for a person: what failed, the value, what is allowed.
class TrainerError : public std::runtime_error {
 public:
  TrainerError(ErrorKind kind, const std::string& message)
      : std::runtime_error(message), kind_(kind) {}
  ErrorKind kind() const { return kind_; }

 private:
  ErrorKind kind_;
};

// Thrown after a stop was requested, between two batches or two parts of an evaluation or analysis.
// Not an error: the exit status is 75.
struct Stopped {};

}  // namespace pelab::trainer
