// Downloads of stored files.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "client/source/data_source.h"

namespace pelab::client {

// Writes the file to `path` atomically: a temporary file beside it, fsync, rename. ALREADY_EXISTS
// if `path` exists, unless `force`; DATA_LOSS if the size or the SHA-256 differs from the row's. A
// source that sends more than the row's size is stopped there.
absl::Status Download(DataSource& source, const v1::ArtifactRow& row, const std::string& path,
                      bool force);

}  // namespace pelab::client
