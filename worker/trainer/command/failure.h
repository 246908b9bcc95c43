// An error as a text for people and as the kind for the error event.
#pragma once

#include <string>

#include "worker/trainer/protocol/error.h"

namespace pelab::trainer {

struct Failure {
  ErrorKind kind;
  std::string message;
};

// Describes the current exception. Call it inside a catch block.
Failure CurrentFailure();

void ReportToPerson(const Failure& failure);

}  // namespace pelab::trainer
