// `pelab export-model`: writes a trained job as a folder that PyTorch reads without pelab.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/source/data_source.h"

namespace pelab::client {

struct ModelFolderOptions {
  std::string out;     // the folder
  bool force = false;  // if the folder has files, replace those that are written
  bool data = false;   // also write the job's data set, which pelab-trainer makes
};

struct ModelFolder {
  struct File {
    std::string name;
    std::uint64_t bytes = 0;
  };
  v1::JobRow job;
  std::vector<File> files;  // by name
};

// Writes all files to a temporary folder beside `out` and then renames them. An error before that
// leaves an older export as it was; an error of a rename may leave files of both. The errors are
// sentences:
// - NOT_FOUND: no such job, or the store lost one of its files; no directory that `out` could be in
// - FAILED_PRECONDITION: the job is not trained, or its weights were not kept; no trainer for the
//   data set
// - INTERNAL: the trainer fails
// - ALREADY_EXISTS: `out` is a file, or a folder with files and not `force`
// - DATA_LOSS: a stored file is damaged
absl::StatusOr<ModelFolder> ExportModel(DataSource& source, const std::string& job,
                                        const ModelFolderOptions& options);

}  // namespace pelab::client
