// The texts of notifications: JSON for programs, with a sentence for people. docs/operations.md
// lists the members. Pure functions: thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/time/time.h"
#include "pelab/v1/results.pb.h"
#include "pelab/v1/sweeps.pb.h"
#include "server/notify/budget.h"

namespace pelab::notify {

// One notification. Each try to deliver it sends the same bytes.
struct Message {
  std::string id;    // of this notification; a receiver that has it already ignores the message
  std::string what;  // for the log: "sweep_done of sweep 3"
  std::string body;  // JSON
};

// The sweep is finished or cancelled. The event is sweep_cancelled if it was cancelled,
// sweep_failed if a job failed, and otherwise sweep_done.
Message SweepEnded(const v1::Sweep& sweep, absl::Time at);
// The first job of the sweep has failed.
Message JobFailed(const v1::Sweep& sweep, const v1::JobRow& job, absl::Time at);
struct Quarantine {
  std::string worker;  // its name
  std::string worker_id;
  absl::Duration length;
};
Message WorkerQuarantined(const Quarantine& quarantine, absl::Time at);
// `sweep` is that of the sheet; null: it has none.
Message BudgetSpent(const SpentBudget& budget, const v1::Sweep* sweep, absl::Time at);
Message GpuSecondsSpent(const SpentGpuSeconds& spent, absl::Time at);

// The value of the header X-Pelab-Signature: "sha256=" and the HMAC-SHA256 (RFC 2104) of the body
// in hexadecimal digits.
std::string Signature(std::string_view secret, std::string_view body);

}  // namespace pelab::notify
