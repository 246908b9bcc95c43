// Files that assignments name by their hash, such as those of own encodings. They are fetched once
// and stay for later attempts, in WORKDIR/files/<sha256>.
#pragma once

#include <set>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "core/base/mutex.h"
#include "pelab/v1/fleet.pb.h"

namespace pelab::agent {

// Thread-safe.
class FileCache {
 public:
  explicit FileCache(std::string directory) : directory_(std::move(directory)) {}

  // For the trainer's --files.
  const std::string& directory() const { return directory_; }
  // Whether the file is there. A file is hashed when this daemon first asks for it. If it is
  // damaged, it counts as missing. Counts as a use of the file.
  bool Has(const v1::NeededFile& file);
  // Moves a file that was fetched, and whose hash was checked, to its place. If several attempts
  // fetch the same file at once, each moves its own copy there.
  absl::Status Put(const std::string& fetched, const std::string& sha256);
  // Removes files that no attempt has used for 30 days. Call it before there are attempts.
  void RemoveOld() const;

 private:
  std::string PathOf(const std::string& sha256) const { return directory_ + "/" + sha256; }

  const std::string directory_;
  Mutex mutex_;
  std::set<std::string> checked_ ABSL_GUARDED_BY(mutex_);  // hashes of files that were whole
};

}  // namespace pelab::agent
