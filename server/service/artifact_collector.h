// Removes files that no row of the database refers to any more. It removes a file soon after its
// last row is deleted. A slow walk over all files finds those that a crash has left. The row is
// always deleted first, durably, and its file afterwards. An uploaded file gets a row
// (store::RecordUpload) before the worker is told that the upload succeeded.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "core/base/clock.h"
#include "core/base/mutex.h"
#include "server/store/artifact_files.h"
#include "server/store/journal.h"

namespace pelab::service {

// A queue of files that have lost a reference, from the writer thread to the collector.
// Thread-safe.
class DroppedFiles {
 public:
  void Add(const std::vector<std::string>& sha256s);
  // Waits up to `timeout` for entries and removes all of them. Empty if none came in time; may also
  // be empty after Stop.
  std::vector<std::string> Take(absl::Duration timeout);
  void Stop();
  bool stopped() const;

 private:
  mutable Mutex mutex_;
  std::vector<std::string> dropped_ ABSL_GUARDED_BY(mutex_);
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
};

// Thread-safe.
class ArtifactCollector {
 public:
  // Starts the collector's thread. The walk begins after `grace` and takes about `grace` to visit
  // every folder once. It keeps files that changed less than `grace` ago.
  // `clock` says how old recorded files are (store::RecordFile).
  ArtifactCollector(const Clock& clock, store::ArtifactFiles& files, store::Journal& journal,
                    std::shared_ptr<DroppedFiles> dropped, absl::Duration grace);
  ~ArtifactCollector();  // like Stop

  // Deletes checkpoints, oldest first, to make room for `bytes` more. May stop early: after 16
  // rounds, or if the journal fails. Blocks.
  void MakeRoom(std::uint64_t bytes);
  // Writes `bytes` to the upload and deletes checkpoints if the quota is full. RESOURCE_EXHAUSTED
  // if there is still no room. Room is made only for bytes that have arrived, never for a size
  // that was announced. Blocks.
  absl::Status Write(store::ArtifactFiles::Upload& upload, absl::string_view bytes);
  // Ends the thread. The journal must still work when this is called.
  void Stop();

 private:
  void Run();
  void Collect(const std::vector<std::string>& sha256s);

  const Clock& clock_;
  store::ArtifactFiles& files_;
  store::Journal& journal_;
  const std::shared_ptr<DroppedFiles> dropped_;
  const absl::Duration grace_;
  std::thread thread_;
};

}  // namespace pelab::service
