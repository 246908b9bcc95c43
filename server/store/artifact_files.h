// Files by their SHA-256 beside the database: FILE.artifacts/ab/<sha256>. A file that is there is
// whole and has that hash. Thread-safe.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "core/base/hashing.h"
#include "core/base/mutex.h"
#include "core/base/unique_fd.h"

namespace pelab::store {

// Whether `text` is a SHA-256 as this project writes it: 64 lower-case hexadecimal digits.
bool IsSha256(absl::string_view text);
// INVALID_ARGUMENT where it is none.
absl::Status CheckSha256(absl::string_view text);

class ArtifactFiles {
 public:
  static constexpr int kFolders = 256;

  // Looks at what is there and removes what uploads have left that never ended. With `store` the
  // files are in that directory, which workers see too: FILE.artifacts becomes a link to it.
  // FAILED_PRECONDITION where FILE.artifacts or `store` is in use for something else.
  static absl::StatusOr<std::unique_ptr<ArtifactFiles>> Open(const std::string& database,
                                                             std::uint64_t quota_bytes,
                                                             const std::string& store = "");

  // Where the file of that hash is, or would be.
  std::string PathOf(const std::string& sha256) const;
  bool Has(const std::string& sha256) const;
  // By whole files and announced uploads.
  std::uint64_t used() const;
  // How many bytes of other files have to go before `bytes` more have room; 0: none.
  std::uint64_t Lacking(std::uint64_t bytes) const;

  // While it lives the file of that hash is not removed.
  class FileHold {
   public:
    FileHold(ArtifactFiles& files, std::string sha256);
    ~FileHold();
    FileHold(const FileHold&) = delete;

   private:
    ArtifactFiles& files_;
    const std::string sha256_;
  };

  // While any such hold lives no file is removed: a backup is reading what its snapshot names.
  using Hold = std::shared_ptr<void>;
  Hold HoldAll();
  bool held() const { return holds_.load() != 0; }

  // An upload. What is not committed leaves nothing behind.
  class Upload {
   public:
    ~Upload();
    // INVALID_ARGUMENT where there is more than was announced; RESOURCE_EXHAUSTED on a full disk.
    absl::Status Write(absl::string_view bytes);
    // The file is durable when this returns OK. INVALID_ARGUMENT where hash or size are not as
    // announced.
    absl::Status Commit();

   private:
    friend class ArtifactFiles;
    Upload(ArtifactFiles& files, std::string sha256, std::uint64_t bytes);

    ArtifactFiles& files_;
    const std::string sha256_;
    const std::uint64_t bytes_;
    std::string temporary_;
    UniqueFd fd_;
    Sha256 hash_;
    std::uint64_t written_ = 0;
  };
  // RESOURCE_EXHAUSTED, with both sizes, where the quota has no room for `bytes`.
  absl::StatusOr<std::unique_ptr<Upload>> Begin(const std::string& sha256, std::uint64_t bytes);
  // A worker has put the file here itself. NOT_FOUND where it is not there at that size;
  // RESOURCE_EXHAUSTED where the quota has no room for it.
  absl::Status Announce(const std::string& sha256, std::uint64_t bytes);

  // Collecting: what nobody needs is looked for among files that may be removed.

  // The files of one folder (0 to kFolders - 1) that have not changed since `cutoff`. Counts the
  // folder's bytes anew, and removes what workers left there half-written an hour ago.
  std::vector<std::string> Old(int folder, absl::Time cutoff);
  // Whether the file may be looked into for removal: nobody holds it. Any hold from now on saves it.
  bool Consider(const std::string& sha256);
  // Removes a file that was considered and not held since; whether it did.
  bool RemoveConsidered(const std::string& sha256);

 private:
  ArtifactFiles(std::string directory, std::uint64_t quota)
      : directory_(std::move(directory)), quota_(quota) {}
  absl::Status Scan();
  std::uint64_t UsedLocked() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status NoRoom(std::uint64_t bytes) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::string directory_;
  const std::uint64_t quota_;
  std::atomic<int> holds_{0};
  mutable Mutex mutex_;
  std::array<std::uint64_t, kFolders> counted_ ABSL_GUARDED_BY(mutex_) = {};  // bytes by folder
  std::uint64_t announced_ ABSL_GUARDED_BY(mutex_) = 0;                       // of open uploads
  std::map<std::string, int> held_ ABSL_GUARDED_BY(mutex_);
  std::set<std::string> considered_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace pelab::store
