// The standard error of one attempt's trainer: its last part on disk, and the bytes on their way to
// the coordinator.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/strings/string_view.h"
#include "core/base/mutex.h"
#include "core/base/unique_fd.h"

namespace pelab::agent {

// Lossy: if the coordinator does not keep up, the oldest unsent bytes are dropped, and the offsets
// show the gap. Thread-safe.
class AttemptLog {
 public:
  // The files `path` and `path`.1 together hold the last 256 to 512 KiB. If they cannot be written,
  // only the copy on disk is missing.
  explicit AttemptLog(std::string path);

  void Append(absl::string_view bytes);

  // Moves the next bytes for the coordinator, at most `max_bytes`, into `data`, and sets `offset`
  // to their offset in the whole log. False if there is nothing new.
  bool Take(std::size_t max_bytes, std::uint64_t* offset, std::string* data);

  // The last bytes of the log, at most 4 KiB.
  std::string Tail() const;

 private:
  void Store(absl::string_view bytes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::string path_;
  mutable Mutex mutex_;
  UniqueFd fd_ ABSL_GUARDED_BY(mutex_);
  std::size_t file_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  std::uint64_t total_ ABSL_GUARDED_BY(mutex_) = 0;
  // the unsent bytes; the last one is at offset total_ - 1
  std::string pending_ ABSL_GUARDED_BY(mutex_);
  std::string tail_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace pelab::agent
