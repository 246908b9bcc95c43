// Hashes of files (core/base/sha256.h has the hash itself).
#pragma once

#include <cstddef>
#include <string>

#include "absl/status/statusor.h"
#include "core/base/sha256.h"

namespace pelab {

// A file's SHA-256 and the number of bytes that were hashed.
struct FileHash {
  std::string sha256;
  std::size_t bytes = 0;
};
// Reads the file once, in pieces. NOT_FOUND if there is no such file; other errors are INTERNAL,
// with the system's reason.
absl::StatusOr<FileHash> Sha256File(const std::string& path);

}  // namespace pelab
