// Files by their SHA-256 beside the database: FILE.artifacts/ab/<sha256>. A file that is there is
// whole and has that hash. Thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/base/hashing.h"
#include "core/base/unique_fd.h"

namespace pelab::store {

// Whether `text` is a SHA-256 as this project writes it: 64 lower-case hexadecimal digits.
bool IsSha256(absl::string_view text);
// INVALID_ARGUMENT where it is none.
absl::Status CheckSha256(absl::string_view text);

class ArtifactFiles {
 public:
  // Looks at what is there and removes what uploads have left that never ended.
  static absl::StatusOr<std::unique_ptr<ArtifactFiles>> Open(const std::string& database,
                                                             std::uint64_t quota_bytes);

  // Where the file of that hash is, or would be.
  std::string PathOf(const std::string& sha256) const;
  bool Has(const std::string& sha256) const;
  std::uint64_t used() const { return used_.load(); }

  // While any hold lives no file may be removed: a backup is reading what its snapshot names.
  // Who removes files asks held() first, and tries again later.
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
    bool committed_ = false;
  };
  // RESOURCE_EXHAUSTED, with both sizes, where the quota has no room for `bytes`.
  absl::StatusOr<std::unique_ptr<Upload>> Begin(const std::string& sha256, std::uint64_t bytes);

 private:
  ArtifactFiles(std::string directory, std::uint64_t quota)
      : directory_(std::move(directory)), quota_(quota) {}
  absl::Status Scan();

  const std::string directory_;
  const std::uint64_t quota_;
  std::atomic<int> holds_{0};
  std::atomic<std::uint64_t> used_{0};  // by whole files and announced uploads
};

}  // namespace pelab::store
