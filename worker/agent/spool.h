// Events of one attempt, on disk until the coordinator has acknowledged them.
//
// The file is a sequence of frames: length (32 bits, little-endian), CRC-32C of what follows (32
// bits), kind (1 byte), payload. Kind 1 is a serialized pelab.v1.Event, kind 2 a 64-bit sequence
// number that the file starts after (written when acknowledged events are cut off its front).
//
// Every event is handed to the kernel before Append returns, so a `kill -9` of the daemon loses
// nothing. Only a Finished event is also synced to the disk: after a power loss the trainer is gone
// and the attempt with it, unless it had ended. A torn or damaged tail is cut off when the file is
// opened.
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

// Bytes of events that are not acknowledged, of all spools of a daemon together. A file is
// rewritten without its acknowledged events once they are 1 MiB and half of it, so the disk holds a
// little more. Thread-safe.
class SpoolQuota {
 public:
  explicit SpoolQuota(std::uint64_t max_bytes) : max_bytes_(max_bytes) {}
  void Add(std::uint64_t bytes) { used_ += bytes; }
  void Subtract(std::uint64_t bytes) { used_ -= bytes; }
  std::uint64_t used() const { return used_; }
  // Trainers are not listened to while it is; what has to be said (how an attempt ended) is spooled
  // all the same.
  bool full() const { return used_ >= max_bytes_; }

 private:
  const std::uint64_t max_bytes_;
  std::atomic<std::uint64_t> used_{0};
};

// Thread-safe. Memory: 8 bytes an event that is not acknowledged.
class Spool {
 public:
  // Opens or creates `path`; `quota` must outlive the spool. DATA_LOSS where the file is not a
  // spool at all.
  static absl::StatusOr<std::unique_ptr<Spool>> Open(const std::string& path, SpoolQuota* quota);
  ~Spool();
  Spool(const Spool&) = delete;
  Spool& operator=(const Spool&) = delete;

  // Gives the event the next sequence number and writes it. After an error nothing was appended.
  absl::Status Append(v1::Event event);

  // Appends the events after sequence number `after` to `batch`, in order, at least one where there
  // is one and at most about `max_bytes`; answers the last number appended (`after` where there is
  // none).
  absl::StatusOr<std::uint64_t> Read(std::uint64_t after, std::size_t max_bytes,
                                     v1::EventBatch* batch) const;

  // Everything up to `sequence` may be forgotten. A number beyond the last is brought down to it.
  void Acknowledge(std::uint64_t sequence);

  // Continues after `sequence`, which the coordinator has stored although this file has lost it (a
  // power loss); no effect where the file reaches as far.
  absl::Status ContinueAfter(std::uint64_t sequence);

  std::uint64_t last() const;  // 0: nothing was ever appended
  std::uint64_t acknowledged() const;
  std::optional<v1::Finished> finished()
      const;  // its last event, where that says how the attempt ended
  std::uint64_t file_bytes() const;

 private:
  Spool(std::string path, UniqueFd fd, SpoolQuota* quota);
  absl::Status Load() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status AppendFrame(char kind, const std::string& payload)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status Compact() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Where the first event that is not acknowledged starts in the file.
  std::uint64_t FirstUnacknowledged() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Charge() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::uint64_t LastLocked() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return base_ + offsets_.size();
  }

  const std::string path_;
  SpoolQuota* const quota_;
  mutable Mutex mutex_;
  UniqueFd fd_ ABSL_GUARDED_BY(mutex_);
  std::uint64_t base_ ABSL_GUARDED_BY(mutex_) =
      0;  // the sequence number before the first kept event
  std::vector<std::uint64_t> offsets_
      ABSL_GUARDED_BY(mutex_);                         // of the frames of base_+1, base_+2, …
  std::uint64_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;    // of the file
  std::uint64_t charged_ ABSL_GUARDED_BY(mutex_) = 0;  // to the quota
  std::uint64_t acknowledged_ ABSL_GUARDED_BY(mutex_) = 0;
  std::optional<v1::Finished> finished_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace pelab::agent
