// Facts about this machine and its processes: CPU time, memory, and the disk's own fsync latency.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/base/process.h"
#include "tests/bench/load/latencies.h"

namespace pelab::load {

// Seconds of CPU that the process has used so far, without its ended children.
double CpuSeconds(pid_t pid);
double OwnCpuSeconds();
// The peak memory of the process, in MiB (VmHWM).
double PeakMiB(pid_t pid);

// The memory, threads and descriptors that a process has now.
struct ProcessSize {
  double resident_mib = 0;
  int threads = 0;
  int descriptors = 0;
};
ProcessSize SizeOf(pid_t pid);
// "Intel(R) Xeon(R) …, 2 cores, load 0.3".
std::string DescribeHost();

// Appends 4 KiB to a file in `directory` and waits until it is on the disk, `times` times.
Latencies ProbeFsync(const std::string& directory, int times);

// Raises the limit of open files as far as allowed. Returns whether this process and its children
// may have `files` open at once.
bool AllowOpenFiles(std::uint64_t files);

// A coordinator for the bench: `pelab-server` on `directory`/pelab.db with a socket next to it.
class ServerProcess {
 public:
  // Starts it with `flags` added, and returns when it answers. It ends when this process does.
  static absl::StatusOr<ServerProcess> Start(const std::string& program,
                                             const std::string& directory,
                                             const std::vector<std::string>& flags = {});

  pid_t pid() const { return process_.pid(); }
  const std::string& address() const { return address_; }
  const std::string& database() const { return database_; }
  // How it ended, if it has ended by itself.
  std::optional<ExitStatus> Ended() { return process_.WaitFor(absl::ZeroDuration()); }
  // Sends SIGTERM and waits for the end; an error if the process had to be killed.
  absl::Status Stop();
  void Kill();

 private:
  ServerProcess(Process process, UniqueFd lifeline, std::string address, std::string database)
      : process_(std::move(process)),
        lifeline_(std::move(lifeline)),
        address_(std::move(address)),
        database_(std::move(database)) {}

  Process process_;
  UniqueFd lifeline_;  // the coordinator ends when it is closed
  std::string address_;
  std::string database_;
};

}  // namespace pelab::load
