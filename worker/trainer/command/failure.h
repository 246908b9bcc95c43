// What went wrong, for a person and for the error event.
#pragma once

#include <string>

#include "worker/trainer/protocol/error.h"

namespace pelab::trainer {

struct Failure {
  ErrorKind kind;
  std::string message;
};

// Of what is being thrown; call where something was caught.
Failure CurrentFailure();

void ReportToPerson(const Failure& failure);

}  // namespace pelab::trainer
