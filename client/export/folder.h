// A folder of files that appears complete or not at all.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/base/sha256.h"
#include "core/base/temporary_folder.h"
#include "core/base/unique_fd.h"

namespace pelab::client {

struct WrittenFile {
  std::string name;
  std::uint64_t rows = 0;  // rows of a table; 0 for other files
  std::uint64_t bytes = 0;
  std::string sha256;
};

// OK if a folder can be made at `path`, or is there and empty. With `force` it may have files.
// ALREADY_EXISTS otherwise; NOT_FOUND if its parent directory does not exist.
absl::Status CheckFree(const std::string& path, bool force = false);
// The path without slashes at its end.
std::string WithoutSlash(std::string path);

// Writes files one after another into a temporary folder beside the requested one; Publish renames
// the temporary folder. Without Publish nothing remains. A killed process leaves behind a folder
// DIR.partial- with six random letters. Not thread-safe.
class ExportFolder {
 public:
  // The errors are those of CheckFree.
  static absl::StatusOr<std::unique_ptr<ExportFolder>> Create(const std::string& path);
  ExportFolder(const ExportFolder&) = delete;

  // Starts a file; "data/mine.pt" stands in a folder of its own. Append adds to it until End.
  absl::Status Begin(const std::string& name);
  absl::Status Append(std::string_view text);
  void CountRows(std::uint64_t rows) { files_.back().rows += rows; }
  absl::Status End();
  // Begin, Append and End in one call.
  absl::Status Write(const std::string& name, std::string_view text);

  // Adds SHA256SUMS, syncs everything and renames the folder to its final name.
  absl::Status Publish();

  // The finished files, in order.
  const std::vector<WrittenFile>& files() const { return files_; }

 private:
  ExportFolder(std::string path, TemporaryFolder partial)
      : path_(std::move(path)), partial_(std::move(partial)) {}

  const std::string path_;
  TemporaryFolder partial_;
  std::vector<WrittenFile> files_;
  std::string file_path_;
  UniqueFd fd_;
  Sha256 hash_;
};

}  // namespace pelab::client
