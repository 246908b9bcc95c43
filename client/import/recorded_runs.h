// Jobs that pelab-trainer trained alone, without a worker, for an import (docs/formats.md, "Runs
// of a trainer alone"). The lines of the trainer were kept in a file.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "core/db/import/import_reader.h"

namespace pelab::client {

// Reads the runs below `folder`: each folder with the files job.json and events.jsonl. A job is
// finished if the last call of the trainer ended with `done`. The jobs belong to no sweep. The
// reader's Check returns UNIMPLEMENTED. NOT_FOUND if there is no run. INVALID_ARGUMENT if a line is
// none of a trainer or cannot follow the earlier ones ("FILE:LINE: why"), or if job.json is wrong
// ("FILE: why"). The last line of a killed trainer may be cut off; it is left out.
absl::StatusOr<std::unique_ptr<db::ImportReader>> OpenRecordedRuns(const std::string& folder);

}  // namespace pelab::client
