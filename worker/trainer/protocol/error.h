// The trainer's own errors. Any code may throw them. An error of one job is caught in
// command/run.cc, all others in command/boundary.cc. There they become an `error` event and an exit
// status.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

namespace pelab::trainer {

// The values of `kind` in an `error` event (docs/formats.md).
enum class ErrorKind { kBadSpec, kOutOfMemory, kNonFiniteLoss, kIo, kInternal };

inline std::string_view ErrorKindName(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::kBadSpec:
      return "bad_spec";
    case ErrorKind::kOutOfMemory:
      return "out_of_memory";
    case ErrorKind::kNonFiniteLoss:
      return "non_finite_loss";
    case ErrorKind::kIo:
      return "io";
    case ErrorKind::kInternal:
      break;
  }
  return "internal";
}

// `what()` is one lower-case sentence for a person: what failed, the value, what is allowed.
class TrainerError : public std::runtime_error {
 public:
  TrainerError(ErrorKind kind, const std::string& message)
      : std::runtime_error(message), kind_(kind) {}
  ErrorKind kind() const { return kind_; }

 private:
  ErrorKind kind_;
};

// Thrown at a batch boundary after a stop was requested. Not an error: the exit status is 75.
struct Stopped {};

}  // namespace pelab::trainer
