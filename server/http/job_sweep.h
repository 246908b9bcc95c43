// A job among the others of its sweep.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "core/db/read/reader.h"
#include "core/render/json.h"
#include "pelab/v1/sweeps.pb.h"

namespace pelab::http {

// The sweep that is named, or else the newest that has the job; nullopt where none of the newest
// hundred has. NOT_FOUND for a name of none.
absl::StatusOr<std::optional<v1::Sweep>> SweepOfJob(db::Reader& reader, std::int64_t job_id,
                                                    const std::string& named);

// The fields beside pe, task and seed in which the sweep's jobs differ, with this job's values:
// {"train.lr": "0.0003"}. Empty for sweeps of so many jobs that they are not put together.
absl::StatusOr<render::Json> VaryingFields(db::Reader& reader, std::int64_t sweep_id,
                                           std::int64_t job_id);

}  // namespace pelab::http
