// Child processes, started with posix_spawn: gRPC's and OpenMP's threads do not survive a bare
// fork.
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
  std::vector<std::string> argv;  // argv[0] is the path of the program
  std::vector<std::pair<std::string, std::string>>
      env;  // variables to add, or to replace in this process's environment
  std::vector<std::string> unset_env;
  std::string working_dir;  // empty: this process's directory
  // Pairs of (descriptor here, its number in the child); the numbers in the child are distinct and
  // from 0 to 9. All other descriptors are closed in the child, except standard output and error.
  // Standard input is /dev/null unless it is mapped.
  std::vector<std::pair<int, int>> fds;
};

// The environment of such a child: NAME=VALUE.
std::vector<std::string> EnvironmentOf(const SpawnOptions& options);

struct ExitStatus {
  bool signaled = false;
  int code = 0;  // the exit status, or the signal's number
  bool ok() const { return !signaled && code == 0; }
  // "exited with status 1", "ended by signal 9 (killed)".
  std::string ToString() const;
};

// A child in its own process group, with default signal dispositions. No process of the group
// outlives the leader: when the leader has ended, the rest of the group is killed. Destroying a
// running Process kills it. Movable; not thread-safe.
class Process {
 public:
  // NOT_FOUND or PERMISSION_DENIED name the program.
  static absl::StatusOr<Process> Spawn(const SpawnOptions& options);

  // Takes over a child that this program has not started itself: an orphan that it has adopted
  // (PR_SET_CHILD_SUBREAPER). It must already lead a process group. FAILED_PRECONDITION if `pid` is
  // no child of this process.
  static absl::StatusOr<Process> Adopt(pid_t pid);

  Process(Process&& other) noexcept;
  Process& operator=(Process&& other) noexcept;
  ~Process();

  pid_t pid() const { return pid_; }
  // A descriptor that becomes readable (for poll) once the child has ended.
  int pidfd() const { return pidfd_.get(); }
  // Sends `signal` to the whole group; does nothing once the child has been waited for.
  void Signal(int signal) const;
  // The exit status, after waiting at most `timeout`; nullopt if the child is still running. May be
  // called again.
  std::optional<ExitStatus> WaitFor(absl::Duration timeout);
  ExitStatus Wait();
  // Sends SIGTERM to the group, and SIGKILL after `grace`; returns when the child has ended.
  ExitStatus Stop(absl::Duration grace);

 private:
  static absl::StatusOr<Process> Watch(pid_t pid);
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
// Both ends are close-on-exec.
absl::StatusOr<Pipe> MakePipe();

// "killed", "terminated", "segmentation fault".
std::string SignalName(int signal);

// The absolute path of the running program.
absl::StatusOr<std::string> SelfPath();

// Finds the executable `name`: first beside the running program, then in PATH. NOT_FOUND says where
// it was searched.
absl::StatusOr<std::string> FindProgram(const std::string& name);

}  // namespace pelab
