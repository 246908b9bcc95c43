// Child processes by posix_spawn: gRPC's and OpenMP's threads do not survive a bare fork.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "core/base/unique_fd.h"

namespace pelab {

struct SpawnOptions {
  std::vector<std::string> argv;  // argv[0]: the path of the program
  std::vector<std::pair<std::string, std::string>>
      env;  // added to, or replacing, this process's environment
  std::vector<std::string> unset_env;
  std::string working_dir;  // empty: this process's
  // (descriptor here, its number in the child), the latter 0 … 9 and distinct. Everything else is
  // closed in the child, but standard output and error; standard input is /dev/null unless mapped.
  std::vector<std::pair<int, int>> fds;
};

struct ExitStatus {
  bool signaled = false;
  int code = 0;  // exit status, or the signal
  bool ok() const { return !signaled && code == 0; }
  // "exited with status 1", "ended by signal 9 (killed)".
  std::string ToString() const;
};

// A child in a process group of its own, with default signal dispositions. Nothing of its group
// outlives it: when the leader has ended, what is left of the group is killed. Destroying a running
// one kills it. Movable; not thread-safe.
class Process {
 public:
  // NOT_FOUND or PERMISSION_DENIED names the program.
  static absl::StatusOr<Process> Spawn(const SpawnOptions& options);

  Process(Process&& other) noexcept;
  Process& operator=(Process&& other) noexcept;
  ~Process();

  pid_t pid() const { return pid_; }
  // Readable (poll) once the child has ended.
  int pidfd() const { return pidfd_.get(); }
  // Sends to the whole group; does nothing once the child has been waited for.
  void Signal(int signal) const;
  // The exit status, waiting for it at most `timeout`; nullopt: still running. Repeatable.
  std::optional<ExitStatus> WaitFor(absl::Duration timeout);
  ExitStatus Wait();
  // SIGTERM to the group, SIGKILL after `grace`; returns when the child is gone.
  ExitStatus Stop(absl::Duration grace);

 private:
  Process(pid_t pid, UniqueFd pidfd) : pid_(pid), pidfd_(std::move(pidfd)) {}
  void KillAndReap();

  pid_t pid_ = -1;
  UniqueFd pidfd_;
  std::optional<ExitStatus> status_;
};

struct Pipe {
  UniqueFd read;
  UniqueFd write;
};
// Both ends close-on-exec.
absl::StatusOr<Pipe> MakePipe();

// "killed", "terminated", "segmentation fault".
std::string SignalName(int signal);

// The absolute path of the running program.
absl::StatusOr<std::string> SelfPath();

// The program `name`: the executable of that name beside the running program, else the first in
// PATH. NOT_FOUND says where it was looked for.
absl::StatusOr<std::string> FindProgram(const std::string& name);

}  // namespace pelab
