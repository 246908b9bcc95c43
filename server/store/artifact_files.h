// Files addressed by their SHA-256, beside the database: FILE.artifacts/ab/<sha256>. A file that is
// present is complete and has that hash. Thread-safe.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
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
#include "server/store/artifact_store.h"

namespace pelab::store {

// INVALID_ARGUMENT if `text` is not a SHA-256.
absl::Status CheckSha256(absl::string_view text);

class ArtifactFiles {
 public:
  static constexpr int kFolders = 256;

  // Counts the files that are present and removes leftovers of interrupted uploads. With `store`,
  // the files are in that directory, which workers see too, and FILE.artifacts becomes a link to
  // it. FAILED_PRECONDITION if FILE.artifacts or `store` is in use for something else.
  static absl::StatusOr<std::unique_ptr<ArtifactFiles>> Open(const std::string& database,
                                                             std::uint64_t quota_bytes,
                                                             std::optional<SharedStore> store = {});

  // The path of the file with this hash, whether or not it exists. nullopt if the text is not a
  // hash. Hashes come from rows of the database too, and those can hold anything.
  std::optional<std::string> PathOf(const std::string& sha256) const;
  bool Has(const std::string& sha256) const;
  // The size of the file with this hash; nullopt if there is none.
  std::optional<std::uint64_t> StoredBytes(const std::string& sha256) const;
  // Bytes of complete files, and what uploads have written so far.
  std::uint64_t used() const;
  // How many bytes of other files must be removed before `bytes` more fit into the quota. 0 if
  // none, or if `bytes` exceeds the quota itself.
  std::uint64_t Lacking(std::uint64_t bytes) const;

  // The file with this hash is not removed while the object exists.
  class FileHold {
   public:
    FileHold(ArtifactFiles& files, std::string sha256);
    ~FileHold();
    FileHold(const FileHold&) = delete;

   private:
    ArtifactFiles& files_;
    const std::string sha256_;
  };

  // No file is removed while any such hold exists: a backup reads the files that its snapshot
  // names.
  using Hold = std::shared_ptr<void>;
  Hold HoldAll();
  bool held() const { return holds_.load() != 0; }

  // An upload. Its bytes count towards the quota once they are written, so a size that is only
  // announced takes no room from others. If it is neither committed nor kept, it leaves nothing
  // behind.
  class Upload {
   public:
    ~Upload();
    bool complete() const { return written_ == bytes_; }
    // INVALID_ARGUMENT if there are more bytes than announced. RESOURCE_EXHAUSTED if they do not
    // fit into the quota: nothing is written, and the call may be repeated when there is room.
    // Any error of the disk stays: it is returned again.
    absl::Status Write(absl::string_view bytes);
    // The file is durable when this returns OK. INVALID_ARGUMENT if the hash or the size differs
    // from the announced one.
    absl::Status Commit();
    // Keeps what was written, so that a later upload of the same file can go on from there. It
    // stays for an hour.
    void Keep();

   private:
    friend class ArtifactFiles;
    // Takes the first `offset` bytes of what an earlier upload has kept.
    absl::Status GoOn(std::uint64_t offset);
    Upload(ArtifactFiles& files, std::string sha256, std::string path, std::uint64_t bytes);
    // Counts `bytes` more towards the quota.
    absl::Status Reserve(std::uint64_t bytes);

    ArtifactFiles& files_;
    const std::string sha256_;
    const std::string path_;
    const std::uint64_t bytes_;
    std::string temporary_;
    UniqueFd fd_;
    Sha256 hash_;
    std::uint64_t written_ = 0;
    std::uint64_t reserved_ = 0;  // guarded by files_.mutex_
    absl::Status broken_;         // the error of the disk
  };
  // The uploads that begin: those that fit now, or also those for which other files may give way.
  enum class Room { kFree, kMayBeMade };
  // INVALID_ARGUMENT if `sha256` is no hash; RESOURCE_EXHAUSTED, with both sizes, if `bytes` do not
  // fit into the quota. Room is taken when bytes come, so a later Write may still find too little.
  // With an `offset`, the upload goes on after so many bytes that Keep has left;
  // FAILED_PRECONDITION if there are fewer.
  absl::StatusOr<std::unique_ptr<Upload>> Begin(const std::string& sha256, std::uint64_t bytes,
                                                Room room = Room::kFree, std::uint64_t offset = 0);
  // How many bytes of an upload of this file are kept.
  std::uint64_t KeptBytes(const std::string& sha256) const;
  // Accounts for a file that a worker has put here itself. INVALID_ARGUMENT if `sha256` is no hash;
  // NOT_FOUND if there is no file of that size; RESOURCE_EXHAUSTED if it does not fit into the
  // quota.
  absl::Status Announce(const std::string& sha256, std::uint64_t bytes);

  // Removing files that nothing refers to: Old, then Consider, then RemoveConsidered.

  // The files of one folder (0 to kFolders - 1) that have not changed since `cutoff`. Also recounts
  // the folder's bytes and removes partial files that workers abandoned more than an hour ago.
  std::vector<std::string> Old(int folder, absl::Time cutoff);
  // Marks the file as a candidate for removal. False if somebody holds it, and for a text that is
  // not a hash (logged): no such file is ever removed. Any later hold withdraws the mark.
  bool Consider(const std::string& sha256);
  // Removes a file that was considered and not held since. Returns whether it was removed.
  bool RemoveConsidered(const std::string& sha256);

 private:
  ArtifactFiles(std::string directory, std::uint64_t quota, std::optional<SharedStore> store)
      : directory_(std::move(directory)), quota_(quota), store_(std::move(store)) {}
  absl::Status Scan();
  std::string KeptPath(const std::string& sha256) const;  // `sha256` is a hash
  std::uint64_t UsedLocked() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status NoRoom(std::uint64_t bytes) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::string directory_;
  const std::uint64_t quota_;
  const std::optional<SharedStore> store_;  // where directory_ leads to
  std::atomic<int> holds_{0};
  mutable Mutex mutex_;
  std::array<std::uint64_t, kFolders> counted_ ABSL_GUARDED_BY(mutex_) = {};  // by folder
  // Bytes that open uploads have written.
  std::uint64_t uploading_ ABSL_GUARDED_BY(mutex_) = 0;
  std::map<std::string, int> held_ ABSL_GUARDED_BY(mutex_);
  std::set<std::string> considered_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace pelab::store
