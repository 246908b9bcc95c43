// The trainer's own errors. They are thrown anywhere and caught once, in command/boundary.cc, where they become an
// `error` event and an exit status.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

namespace pelab::trainer {

// What an `error` event's `kind` says (docs/formats.md).
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

// Thrown at a batch boundary after a stop was asked for. Not an error: exit status 75.
struct Stopped {};

}  // namespace pelab::trainer
