// Conversions between protobuf messages and the coordinator's values. Pure functions.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "pelab/v1/fleet.pb.h"
#include "server/sched/scheduler.h"
#include "server/store/writes.h"

namespace pelab::service {

struct HelloParts {
  store::WorkerHello write;
  sched::WorkerInfo info;
};
// INVALID_ARGUMENT names the field and what is allowed; FAILED_PRECONDITION if the protocol version
// is not 1.
absl::StatusOr<HelloParts> ToHello(const v1::Hello& hello, std::int64_t now);

store::Held ToHeld(const v1::HeldAttempt& held);
sched::DeviceLoad ToLoad(const v1::DeviceLoad& load);
v1::Assignment ToProto(const store::Assignment& assignment);

}  // namespace pelab::service
