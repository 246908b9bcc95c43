// `pelab export`: writes a sweep's results as files that can be read without pelab.
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

// Writes the results of the sweep's jobs to the folder `path` (ExportFolder). If `where` is not
// empty, writes only the jobs that meet this condition; NOT_FOUND if there is none. Other errors
// are those of ExportFolder::Create and of the source. All job rows are held in memory, but only
// some epochs and matrices at a time. `progress` receives a message from time to time.
absl::StatusOr<ExportReport> ExportSweep(DataSource& source, const std::string& sweep,
                                         const std::string& where, const std::string& path,
                                         const std::function<void(const std::string&)>& progress);

}  // namespace pelab::client
