// Finds a job's sweep, and how the job differs from the sweep's other jobs.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "core/db/read/reader.h"
#include "core/render/json.h"
#include "pelab/v1/sweeps.pb.h"

namespace pelab::http {

// The named sweep or, if `named` is empty, the newest sweep that has the job. nullopt if none of
// the newest 100 sweeps has it. NOT_FOUND if `named` names no sweep.
absl::StatusOr<std::optional<v1::Sweep>> SweepOfJob(db::Reader& reader, std::int64_t job_id,
                                                    const std::string& named);

// The fields besides pe, task and seed in which the sweep's jobs differ, with this job's values:
// {"train.lr": "0.0003"}. Empty if the sweep has more than kMostJobs jobs (lists.h).
absl::StatusOr<render::Json> VaryingFields(db::Reader& reader, std::int64_t sweep_id,
                                           std::int64_t job_id);

}  // namespace pelab::http
