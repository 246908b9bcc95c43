// `pelab export`: a sweep's results as files that can be read without pelab.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/export/folder.h"
#include "client/source/data_source.h"

namespace pelab::client {

struct ExportReport {
  v1::Sweep sweep;
  std::uint64_t jobs = 0;
  std::uint64_t trained = 0;
  std::vector<WrittenFile> files;
};

// Writes everything of the sweep's jobs that meet the condition `where` (empty: of all of them) to
// the folder `path` (ExportFolder). Holds the sweep's jobs in
// memory, but of their epochs and matrices only some at a time. `progress` is told now and then
// what is done, in words.
absl::StatusOr<ExportReport> ExportSweep(DataSource& source, const std::string& sweep,
                                         const std::string& where, const std::string& path,
                                         const std::function<void(const std::string&)>& progress);

}  // namespace pelab::client
