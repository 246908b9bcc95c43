// Stored files, brought here.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "client/source/data_source.h"

namespace pelab::client {

// Writes the file to `path` whole or not at all: a temporary file beside it, fsync, rename.
// ALREADY_EXISTS where `path` is there (unless `force`); DATA_LOSS where the bytes are not those of
// the row's SHA-256.
absl::Status Download(DataSource& source, const v1::ArtifactRow& row, const std::string& path,
                      bool force);

}  // namespace pelab::client
