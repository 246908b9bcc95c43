// Moves the WAL into the database file on a thread and a connection of its own, while the writer goes on. What is written
// meanwhile stays for the writer: only when nothing is left in the log does it begin anew, so the writer moves that small rest
// itself (Store::Checkpoint).
#pragma once

#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "core/base/mutex.h"

namespace pelab::store {

class Checkpointer {
 public:
  // `vfs` as for Database::Open. The thread starts at once, and opens the file when it is first asked.
  Checkpointer(std::string path, std::string vfs);
  // Waits for the one that is under way.
  ~Checkpointer();

  // Thread-safe; nothing while one is under way.
  void Begin();
  // Whether one has ended, well or not, since the last call. Thread-safe.
  bool TakeEnded();

 private:
  enum class State { kIdle, kWanted, kRunning, kEnded, kStopping };
  void Run();

  const std::string path_;
  const std::string vfs_;
  Mutex mutex_;
  State state_ ABSL_GUARDED_BY(mutex_) = State::kIdle;
  std::thread thread_;
};

}  // namespace pelab::store
