// Between the wire's messages and the coordinator's values. Pure functions.
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

// INVALID_ARGUMENT says what the message lacks. `now` is the coordinator's clock.
absl::StatusOr<store::AttemptEvent> ToEvent(const v1::Event& event, std::int64_t now,
                                            double jitter);

// What was stored elsewhere, judged by the store.
store::Epoch ToEpoch(const v1::Epoch& epoch);
store::HeadAblation ToMatrix(const v1::HeadAblation& matrix);
store::AnalysisResult ToResult(const v1::AnalysisResult& result);

struct HelloParts {
  store::WorkerHello write;
  sched::WorkerInfo info;
};
// INVALID_ARGUMENT names the member and what is allowed.
absl::StatusOr<HelloParts> ToHello(const v1::Hello& hello, std::int64_t now);

store::Held ToHeld(const v1::HeldAttempt& held);
sched::DeviceLoad ToLoad(const v1::DeviceLoad& load);
// How a worker drains as the database has it (store::DrainWorker), and back; empty is RESUME.
v1::Drain::Mode ToDrainMode(const std::string& drain);
// INVALID_ARGUMENT where the mode is none.
absl::StatusOr<std::string> FromDrainMode(v1::Drain::Mode mode);
v1::Assignment ToProto(const store::Assignment& assignment);

}  // namespace pelab::service
