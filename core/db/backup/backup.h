// Copies of a database with its artifacts: taken from a snapshot, written whole or not at all. A
// copy is a database like any other: pelab-server --db COPY serves it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/base/sha256.h"
#include "core/base/unique_fd.h"

namespace pelab::db {

struct StoredFile {
  std::string sha256;
  std::uint64_t bytes = 0;
};

// Copies the database as it is now to the new or empty file `target`, in one read transaction: it
// may be served meanwhile, and a checkpoint waits for the end. Answers which artifacts it refers
// to. Not synced. CANCELLED once `stopped` answers true; RESOURCE_EXHAUSTED where the disk of
// `target` is full; else the errors of Reader::Open.
absl::StatusOr<std::vector<StoredFile>> CopyDatabase(const std::string& path,
                                                     const std::string& target,
                                                     const std::function<bool()>& stopped = {});

// The same of a file of any schema, without its artifacts.
absl::Status CopyAnySchema(const std::string& path, const std::string& target);

struct BackupReport {
  std::uint64_t database_bytes = 0;
  std::uint64_t artifacts = 0;
  std::uint64_t artifact_bytes = 0;
  // That the database refers to, but that are not there, or not with their content.
  std::vector<std::string> missing_artifacts;
};

// The receiving end of a copy, piece by piece: the database first, then files. What is not finished
// leaves nothing behind; a process that is killed leaves FILE.partial and FILE.partial.artifacts,
// which the next try removes. Not thread-safe.
class BackupWriter {
 public:
  // ALREADY_EXISTS where `target` or its artifacts are there, or somebody writes them right now.
  static absl::StatusOr<std::unique_ptr<BackupWriter>> Create(const std::string& target);
  ~BackupWriter();
  BackupWriter(const BackupWriter&) = delete;

  // For CopyDatabase; or piece by piece.
  const std::string& database_file() const { return partial_; }
  absl::Status AppendDatabase(std::string_view piece);

  // A file follows, until the next one begins; one whose content is not that of its hash counts as
  // missing.
  absl::Status BeginArtifact(const StoredFile& file);
  absl::Status AppendArtifact(std::string_view piece);
  void ArtifactIsMissing(const std::string& sha256);

  // Syncs everything and gives it its name.
  absl::StatusOr<BackupReport> Finish();

 private:
  BackupWriter(const std::string& target, UniqueFd lock);
  absl::Status EndArtifact();
  absl::Status Publish();

  const std::string target_;
  const std::string partial_;
  UniqueFd fd_;  // of the database; holds the lock
  bool finished_ = false;

  UniqueFd artifact_;
  StoredFile announced_;
  std::string artifact_path_;
  std::uint64_t artifact_written_ = 0;
  std::unique_ptr<Sha256> hash_;
  BackupReport report_;
};

// A copy at `target` of a database that nobody serves (hold its lock), with its artifacts.
absl::StatusOr<BackupReport> Backup(const std::string& path, const std::string& target);

}  // namespace pelab::db
