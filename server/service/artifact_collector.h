// Removes files that no row of the database names any more: at once where a row has gone, and in a
// slow walk over all of them for what a crash has left. A row goes first, and durably; its file
// follows. What an attempt has sent is a row (store::RecordUpload) before the attempt is told so.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/time/time.h"
#include "core/base/mutex.h"
#include "server/store/artifact_files.h"
#include "server/store/journal.h"

namespace pelab::service {

// Files that have lost a reference, on their way from the writing thread to the collector.
// Thread-safe.
class DroppedFiles {
 public:
  void Add(const std::vector<std::string>& sha256s);
  // Waits at most `timeout` for some; empty also once stopped.
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
  // The walk begins after `grace`, passes every folder once in that time, and leaves alone what has
  // changed within it.
  ArtifactCollector(store::ArtifactFiles& files, store::Journal& journal,
                    std::shared_ptr<DroppedFiles> dropped, absl::Duration grace);
  ~ArtifactCollector();  // as Stop

  // Gives up checkpoints, the oldest first, until `bytes` more have room, as far as there are any.
  void MakeRoom(std::uint64_t bytes);
  // Ends its thread. The journal must still work.
  void Stop();

 private:
  void Run();
  void Collect(const std::vector<std::string>& sha256s);

  store::ArtifactFiles& files_;
  store::Journal& journal_;
  const std::shared_ptr<DroppedFiles> dropped_;
  const absl::Duration grace_;
  std::thread thread_;
};

}  // namespace pelab::service
