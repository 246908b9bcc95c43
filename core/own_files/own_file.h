// Reads the files that documents name: encodings (core/torchscript) and data (core/safetensors).
// Thread-safe.
#pragma once

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/base/hashing.h"
#include "core/base/temporary_folder.h"
#include "core/experiment/declaration.h"
#include "core/safetensors/task_file.h"

namespace pelab::own_files {

struct OwnFile {
  std::string path;  // of the bytes that the declaration describes; a copy, if they were converted
  experiment::Declaration declaration;                // with hash and size
  std::shared_ptr<TemporaryFolder> folder = nullptr;  // keeps the copy
};

// Reads a file of an encoding. Errors as ReadOwnData.
absl::StatusOr<OwnFile> ReadOwnEncoding(const std::string& path);

// Reads a file of data, or a NumPy archive (PATH.npz), which is converted. Checks everything in it.
// NOT_FOUND if there is no file, INVALID_ARGUMENT with a sentence that names the path if it is none
// of that.
struct OwnData {
  OwnFile file;
  TaskFile data;
};
absl::StatusOr<OwnData> ReadOwnData(const std::string& path);
// Whether the file looks like one of data, by its first bytes or the end of its name.
bool LooksLikeData(const std::string& path);

// The hash of a file that declares an encoding, or that has the tensors of a file of data. Reads no
// tensor, so it needs little memory for a large file.
absl::StatusOr<FileHash> CheckOwnFile(const std::string& path);

}  // namespace pelab::own_files
