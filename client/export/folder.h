// A folder of files that is there whole or not at all.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/base/sha256.h"
#include "core/base/unique_fd.h"

namespace pelab::client {

struct WrittenFile {
  std::string name;
  std::uint64_t rows = 0;  // of a table; 0: it is none
  std::uint64_t bytes = 0;
  std::string sha256;
};

// Files are written one after another into a temporary folder beside the one that is asked for,
// which takes its name at the end. What is not published leaves nothing behind; a process that is
// killed leaves DIR.partial-XXXXXX. Not thread-safe.
class ExportFolder {
 public:
  // ALREADY_EXISTS where `path` is there and not an empty directory; NOT_FOUND where the directory
  // that it is to be in is not there.
  static absl::StatusOr<std::unique_ptr<ExportFolder>> Create(const std::string& path);
  ~ExportFolder();
  ExportFolder(const ExportFolder&) = delete;

  // The file that Append adds to from now on.
  absl::Status Begin(const std::string& name);
  absl::Status Append(std::string_view text);
  void CountRows(std::uint64_t rows) { files_.back().rows += rows; }
  absl::Status End();
  // Begin, Append and End.
  absl::Status Write(const std::string& name, std::string_view text);

  // Adds SHA256SUMS, syncs everything and gives the folder its name.
  absl::Status Publish();

  // Those that were ended, in order.
  const std::vector<WrittenFile>& files() const { return files_; }

 private:
  ExportFolder(std::string path, std::string partial)
      : path_(std::move(path)), partial_(std::move(partial)) {}

  const std::string path_;
  std::string partial_;  // empty once it is published
  std::vector<WrittenFile> files_;
  std::string file_path_;
  UniqueFd fd_;
  Sha256 hash_;
};

}  // namespace pelab::client
