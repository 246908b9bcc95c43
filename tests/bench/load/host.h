// What a load run knows of its machine and of processes: CPU time, memory, the disk's own fsync.
#pragma once

#include <sys/types.h>

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/base/process.h"
#include "tests/bench/load/latencies.h"

namespace pelab::load {

// Seconds of CPU that the process has used so far, its ended children not counted.
double CpuSeconds(pid_t pid);
double OwnCpuSeconds();
// The most memory that it ever held, in MiB (VmHWM).
double PeakMiB(pid_t pid);
// "Intel(R) Xeon(R) …, 2 cores, load 0.3".
std::string DescribeHost();

// Appends 4 KiB and waits until it is on the disk, `times` times, in a file of `directory`.
Latencies ProbeFsync(const std::string& directory, int times);

// Whether this process and its children may have `files` open at once; raises the limit as far as
// it may.
bool AllowOpenFiles(std::uint64_t files);

// A coordinator of its own: `pelab-server` on `directory`/pelab.db and a socket beside it.
class ServerProcess {
 public:
  // Answers when it does.
  static absl::StatusOr<ServerProcess> Start(const std::string& program,
                                             const std::string& directory);

  pid_t pid() const { return process_.pid(); }
  const std::string& address() const { return address_; }
  const std::string& database() const { return database_; }
  // SIGTERM, and its end; an error where it had to be killed.
  absl::Status Stop();
  void Kill();

 private:
  ServerProcess(Process process, std::string address, std::string database)
      : process_(std::move(process)),
        address_(std::move(address)),
        database_(std::move(database)) {}

  Process process_;
  std::string address_;
  std::string database_;
};

}  // namespace pelab::load
