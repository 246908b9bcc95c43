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
  int protocol = 0;  // the version that the session speaks (core/rpc/fleet_protocol.h)
};
// INVALID_ARGUMENT names the field and what is allowed; FAILED_PRECONDITION if worker and
// coordinator have no version of the protocol in common.
absl::StatusOr<HelloParts> ToHello(const v1::Hello& hello, std::int64_t now);

store::Held ToHeld(const v1::HeldAttempt& held);
// Each device once, and at most limits::kLoadsOfWorker.
std::vector<sched::DeviceLoad> ToLoads(const v1::Heartbeat& heartbeat);
// Each device and number once, and at most limits::kErrorsOfWorker.
std::vector<sched::GpuErrors> ToErrors(const v1::Heartbeat& heartbeat);
v1::Assignment ToProto(const store::Assignment& assignment);

}  // namespace pelab::service
