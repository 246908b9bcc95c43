// Stores the events of one attempt on disk until the coordinator has acknowledged them.
//
// The file is a sequence of frames: length of the payload (32 bits, little-endian), CRC-32C of kind
// and payload (32 bits), kind (1 byte), payload. Kind 1 is a serialized pelab.v1.Event. Kind 2 is a
// 64-bit sequence number: the events behind it in the file come after this number. It is the first
// frame of a file from which acknowledged events were cut off.
//
// Every event is handed to the kernel before Append returns, so a `kill -9` of the daemon loses
// nothing. Only a Finished event is also synced to the disk: after a power loss the trainer is
// gone, so an attempt that had not ended is lost anyway. Opening the file cuts off a torn or
// damaged tail.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/base/mutex.h"
#include "core/base/unique_fd.h"
#include "pelab/v1/fleet.pb.h"

namespace pelab::agent {

// The size of all events that are not acknowledged, over all spools of a daemon. The disk can hold
// twice as much, or 1 MiB more for each spool: a file is rewritten without its acknowledged events
// only when those take at least 1 MiB and at least half of the file. Thread-safe.
class SpoolQuota {
 public:
  explicit SpoolQuota(std::uint64_t max_bytes) : max_bytes_(max_bytes) {}
  void Add(std::uint64_t bytes) { used_ += bytes; }
  void Subtract(std::uint64_t bytes) { used_ -= bytes; }
  std::uint64_t used() const { return used_; }
  // While the quota is full, the daemon does not read the trainers' output. Events that must not
  // wait, such as the end of an attempt, are still spooled.
  bool full() const { return used_ >= max_bytes_; }

 private:
  const std::uint64_t max_bytes_;
  std::atomic<std::uint64_t> used_{0};
};

// Thread-safe. Memory: 8 bytes for each event that is still in the file.
class Spool {
 public:
  // Opens or creates `path`; `quota` must outlive the spool. The file is cut at its first frame
  // that is not valid, so a file that is no spool is emptied.
  static absl::StatusOr<std::unique_ptr<Spool>> Open(const std::string& path, SpoolQuota* quota);
  ~Spool();
  Spool(const Spool&) = delete;
  Spool& operator=(const Spool&) = delete;

  // Gives the event the next sequence number and writes it. After an error nothing was appended:
  // RESOURCE_EXHAUSTED if the disk is full (try again later), INVALID_ARGUMENT if the event is
  // longer than limits::kSpooledEventBytes, FAILED_PRECONDITION after a Finished event.
  absl::Status Append(v1::Event event);

  // Appends the events after sequence number `after` to `batch`, in order: at least one if there is
  // one, and at most about `max_bytes`. Returns the last number appended (`after` if there is
  // none). DATA_LOSS if an event cannot be read back.
  absl::StatusOr<std::uint64_t> Read(std::uint64_t after, std::size_t max_bytes,
                                     v1::EventBatch* batch) const;

  // The events up to `sequence` may be forgotten. A number after the last event counts as the last.
  void Acknowledge(std::uint64_t sequence);

  // Continues after `sequence`, which the coordinator has stored although this file has lost it (a
  // power loss). No effect if the file reaches that far. INVALID_ARGUMENT above 2^62.
  absl::Status ContinueAfter(std::uint64_t sequence);

  std::uint64_t last() const;  // 0: nothing was ever appended
  std::uint64_t acknowledged() const;
  // The last event, if it says how the attempt ended.
  std::optional<v1::Finished> finished() const;
  std::uint64_t file_bytes() const;

 private:
  Spool(std::string path, UniqueFd fd, SpoolQuota* quota);
  absl::Status Load() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status AppendFrame(char kind, const std::string& payload)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status Compact() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The file offset of the first event that is not acknowledged.
  std::uint64_t FirstUnacknowledged() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Charge() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::uint64_t LastLocked() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return base_ + offsets_.size();
  }

  const std::string path_;
  SpoolQuota* const quota_;
  mutable Mutex mutex_;
  UniqueFd fd_ ABSL_GUARDED_BY(mutex_);
  // The sequence number before the first event in the file.
  std::uint64_t base_ ABSL_GUARDED_BY(mutex_) = 0;
  // File offsets of the frames of events base_ + 1, base_ + 2, …
  std::vector<std::uint64_t> offsets_ ABSL_GUARDED_BY(mutex_);
  // Size of the file.
  std::uint64_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  // Bytes counted in the quota.
  std::uint64_t charged_ ABSL_GUARDED_BY(mutex_) = 0;
  std::uint64_t acknowledged_ ABSL_GUARDED_BY(mutex_) = 0;
  std::optional<v1::Finished> finished_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace pelab::agent
