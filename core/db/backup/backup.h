// Copies of a database with its artifacts, taken from a snapshot and written completely or not at
// all. A copy is an ordinary database: `pelab-server --db COPY` serves it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <set>
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

// Copies the current state of the database to the new or empty file `target`, in one read
// transaction. The database may be served meanwhile; a WAL checkpoint waits until the copy ends.
// Returns the files that the database refers to (artifacts, checkpoints, and files that specs
// name). Does not sync.
// CANCELLED once `stopped` returns true; RESOURCE_EXHAUSTED if the disk of `target` is full;
// otherwise the errors of Reader::Open.
absl::StatusOr<std::vector<StoredFile>> CopyDatabase(const std::string& path,
                                                     const std::string& target,
                                                     const std::function<bool()>& stopped = {});

// Like CopyDatabase, but for a file with any schema version. Returns no list of files.
absl::Status CopyAnySchema(const std::string& path, const std::string& target);

struct BackupReport {
  std::uint64_t database_bytes = 0;
  std::uint64_t artifacts = 0;
  std::uint64_t artifact_bytes = 0;
  std::uint64_t linked_artifacts = 0;  // of `artifacts`: hard links to files of earlier backups
  // SHA-256 of files that the database refers to, but that are missing or have other content.
  std::vector<std::string> missing_artifacts;
};

// Receives a copy piece by piece: first the database, then the files. An unfinished copy is
// removed. A process that is killed leaves FILE.partial and FILE.partial.artifacts behind, which
// the next attempt removes. Not thread-safe.
class BackupWriter {
 public:
  // ALREADY_EXISTS if `target` or its artifacts exist, or if another backup to `target` is running.
  static absl::StatusOr<std::unique_ptr<BackupWriter>> Create(const std::string& target);
  ~BackupWriter();
  BackupWriter(const BackupWriter&) = delete;

  // The file to pass to CopyDatabase; alternatively, AppendDatabase writes it piece by piece.
  const std::string& database_file() const { return partial_; }

  // Announces how many bytes AppendDatabase will get, and how many files will be named. Data beyond
  // an announced size is refused with DATA_LOSS, so that an endless source cannot fill the disk.
  void Announce(std::uint64_t database_bytes, std::uint64_t files);
  absl::Status AppendDatabase(std::string_view piece);

  // Begins a file, which ends when the next one begins or at Finish. A file whose content does not
  // match its hash counts as missing. INVALID_ARGUMENT if `file.sha256` is no SHA-256: the name
  // comes from another program, and only a hash is safe as a path.
  absl::Status BeginArtifact(const StoredFile& file);
  absl::Status AppendArtifact(std::string_view piece);
  absl::Status ArtifactIsMissing(const std::string& sha256);

  // Makes the file a hard link to `from`, which must have been checked when it was written. Returns
  // whether it did: not if `from` is no regular file of that size, or cannot be linked (another
  // file system, or one without hard links, or too many links).
  absl::StatusOr<bool> LinkArtifact(const StoredFile& file, const std::string& from);

  // Ends the last file. Finish does it too.
  absl::Status EndArtifact();
  // Whether a file is missing. Call it after EndArtifact.
  bool lacks_artifacts() const { return !report_.missing_artifacts.empty(); }

  // Syncs everything and gives the copy its final name.
  absl::StatusOr<BackupReport> Finish();

 private:
  BackupWriter(const std::string& target, UniqueFd lock);
  absl::Status CountFile();
  // Sets artifact_path_ and makes its folder.
  absl::Status PrepareArtifact(const StoredFile& file);
  absl::Status Publish();

  const std::string target_;
  const std::string partial_;
  UniqueFd fd_;  // the partial database file; holds the lock
  bool finished_ = false;

  std::uint64_t database_bytes_ = 0;  // announced
  std::uint64_t database_written_ = 0;
  std::uint64_t files_ = 0;  // announced
  std::uint64_t files_named_ = 0;

  UniqueFd artifact_;
  StoredFile announced_;
  std::string artifact_path_;
  std::uint64_t artifact_written_ = 0;
  std::unique_ptr<Sha256> hash_;
  std::set<std::string> unsynced_folders_;  // with new links
  BackupReport report_;
};

struct BackupOptions {
  // Earlier backups, best first. A file that one of them has is hard-linked, where the file system
  // can do that, and not read again. Never the database itself: damage would then reach both.
  std::vector<std::string> earlier;
  // Bytes that stay free on the disk of `target`. 0: the disk may be filled.
  std::uint64_t reserve = 0;
  bool check = false;  // CheckDatabase must find the copy sound before it gets its name
  std::function<bool()> stopped;
  // Released once the artifacts are copied: while it exists, none is removed.
  std::shared_ptr<void> hold;
};

// Copies a database with its artifacts to `target`. The caller must hold the database's lock, and
// if the database is served meanwhile, `hold` must keep its artifacts.
// The errors are those of BackupWriter and CopyDatabase; CANCELLED soon after `stopped` returns
// true; RESOURCE_EXHAUSTED if less than the reserve would stay free; DATA_LOSS if the check finds a
// problem other than artifacts that are missing in the original too.
absl::StatusOr<BackupReport> Backup(const std::string& path, const std::string& target,
                                    BackupOptions options = {});

}  // namespace pelab::db
