// The standard error of one attempt's trainer: its end on disk, and what is on its way to the
// coordinator.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/strings/string_view.h"
#include "core/base/mutex.h"
#include "core/base/unique_fd.h"

namespace pelab::agent {

// Lossy: where the coordinator does not keep up, the middle is dropped, and offsets show it.
// Thread-safe.
class AttemptLog {
 public:
  // `path` and `path`.1 hold the last 256 to 512 KiB. Where the disk refuses, only the copy on disk
  // is missing.
  explicit AttemptLog(std::string path);

  void Append(absl::string_view bytes);

  // The next bytes for the coordinator, at most `max_bytes`, and their offset in the whole log;
  // false: nothing new.
  bool Take(std::size_t max_bytes, std::uint64_t* offset, std::string* data);

  // The last bytes, at most 4 KiB.
  std::string Tail() const;

 private:
  void Store(absl::string_view bytes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::string path_;
  mutable Mutex mutex_;
  UniqueFd fd_ ABSL_GUARDED_BY(mutex_);
  std::size_t file_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  std::uint64_t total_ ABSL_GUARDED_BY(mutex_) = 0;
  std::string pending_ ABSL_GUARDED_BY(mutex_);  // ends at total_
  std::string tail_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace pelab::agent
