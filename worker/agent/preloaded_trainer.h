// Starts trainers from one process that has loaded LibTorch already, so that each job is spared
// half a second of processor time, or several seconds with CUDA.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "core/base/mutex.h"
#include "core/base/process.h"
#include "core/base/unique_fd.h"

namespace pelab::agent {

// Thread-safe. The process is started with the first trainer, and again if it has ended or if the
// trainer's file has changed. It ends with this object; trainers that it has forked do not.
class PreloadedTrainer {
 public:
  struct Settings {
    std::string trainer;  // absolute path
    // Variables that LibTorch reads while it is loaded.
    std::vector<std::pair<std::string, std::string>> environment;
    std::string trainer_id;  // of the process itself (strays.h), as long as those of trainers
    absl::Duration patience = absl::Seconds(60);  // for an answer, loading included
  };
  explicit PreloadedTrainer(Settings settings) : settings_(std::move(settings)) {}

  // Starts a trainer as Process::Spawn does, with the same result for all who look at it.
  // `options.argv[0]` must be the trainer. If the preloaded process fails, the trainer is started
  // in the ordinary way; after three failures in a row all others are too. Until a first fork
  // succeeds, only the third failure is a warning: the program may be no trainer, or an older one.
  absl::StatusOr<Process> Start(const SpawnOptions& options);

 private:
  // The properties of a file that tell one build of the trainer from another.
  struct File {
    dev_t device = 0;
    ino_t inode = 0;
    timespec changed = {};
    bool operator==(const File& other) const;
  };
  struct Running {
    Process process;
    UniqueFd control;
    File file;
  };

  absl::StatusOr<Process> Fork(const SpawnOptions& options);
  absl::Status Load() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::StatusOr<pid_t> Ask(const SpawnOptions& options, int go)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::StatusOr<File> FileNow() const;

  const Settings settings_;
  Mutex mutex_;
  std::optional<Running> running_ ABSL_GUARDED_BY(mutex_);
  int failures_ ABSL_GUARDED_BY(mutex_) = 0;  // in a row
  bool has_forked_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace pelab::agent
