// Conversions between protobuf messages and the coordinator's values. Pure functions.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "pelab/v1/common.pb.h"
#include "pelab/v1/fleet.pb.h"
#include "server/sched/scheduler.h"
#include "server/store/writes.h"

namespace pelab::service {

// INVALID_ARGUMENT says what is wrong with the event. `now` is the coordinator's clock in Unix
// milliseconds; `jitter` is the factor for a back-off, in [0.5, 1).
absl::StatusOr<store::AttemptEvent> ToEvent(const v1::Event& event, std::int64_t now,
                                            double jitter);

// Conversions without checks. The store checks the values.
store::Epoch ToEpoch(const v1::Epoch& epoch);
store::HeadAblation ToMatrix(const v1::HeadAblation& matrix);
store::AnalysisResult ToResult(const v1::AnalysisResult& result);

struct HelloParts {
  store::WorkerHello write;
  sched::WorkerInfo info;
};
// INVALID_ARGUMENT names the field and what is allowed; FAILED_PRECONDITION if the protocol version
// is not 1.
absl::StatusOr<HelloParts> ToHello(const v1::Hello& hello, std::int64_t now);

store::Held ToHeld(const v1::HeldAttempt& held);
sched::DeviceLoad ToLoad(const v1::DeviceLoad& load);
// Converts between a Drain message's mode and the database's word for it (store::DrainWorker). The
// empty word stands for RESUME.
v1::Drain::Mode ToDrainMode(const std::string& drain);
// INVALID_ARGUMENT if the mode is unknown.
absl::StatusOr<std::string> FromDrainMode(v1::Drain::Mode mode);
v1::Assignment ToProto(const store::Assignment& assignment);

}  // namespace pelab::service
