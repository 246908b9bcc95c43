// Runs WAL checkpoints on a thread and a connection of its own while the writer continues. Pages
// that are written meanwhile are left for the writer: SQLite restarts the log only when nothing is
// left in it, so the writer checkpoints that small rest itself (Store::Checkpoint).
#pragma once

#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "core/base/mutex.h"

namespace pelab::store {

class Checkpointer {
 public:
  // `vfs` is as for Database::Open. The thread starts at once; it opens the file at the first
  // Begin.
  Checkpointer(std::string path, std::string vfs);
  // Waits for the WAL checkpoint that is running.
  ~Checkpointer();

  // Starts a WAL checkpoint, and returns true. Does nothing while one is running. Thread-safe.
  bool Begin();
  // Waits until no WAL checkpoint is running. Thread-safe.
  void AwaitEnd();
  // Whether a WAL checkpoint has ended, successfully or not, since the last call. Thread-safe.
  bool TakeEnded();

 private:
  enum class State { kIdle, kWanted, kRunning, kEnded, kStopping };
  bool Busy() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return state_ == State::kWanted || state_ == State::kRunning;
  }
  void Run();

  const std::string path_;
  const std::string vfs_;
  Mutex mutex_;
  State state_ ABSL_GUARDED_BY(mutex_) = State::kIdle;
  std::thread thread_;
};

}  // namespace pelab::store
