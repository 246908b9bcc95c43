// NVIDIA's Multi-Process Service: with it the kernels of several processes run on a GPU at once,
// without it they take turns.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace pelab::agent {

// The program that starts a control daemon and talks to it; nullopt where this host lacks it, or has
// a daemon already, which trainers find by themselves: its environment names one, or one listens in
// `host_directory`, where NVIDIA's programs put it.
std::optional<std::string> MpsProgram(const std::string& host_directory = "/tmp/nvidia-mps");

// Where a worker's own daemon works: in its work directory (absolute), or, where the sockets' names
// would be too long for there, in one of its own for temporary files.
std::string MpsDirectory(const std::string& work_dir, const std::string& worker_id);

// A control daemon of this worker's own, for its trainers. One that an earlier worker has left in the
// directory is ended first. Not thread-safe.
class Mps {
 public:
  // Errors say why there is none; FAILED_PRECONDITION where the directory is somebody else's.
  static absl::StatusOr<std::unique_ptr<Mps>> Start(std::string program, std::string directory,
                                                    absl::Duration patience = absl::Seconds(10));
  ~Mps();  // ends the daemon
  Mps(const Mps&) = delete;
  Mps& operator=(const Mps&) = delete;

  // What trainers are to be given.
  std::pair<std::string, std::string> Variable() const;

 private:
  Mps(std::string program, std::string directory)
      : program_(std::move(program)), directory_(std::move(directory)) {}
  absl::Status Begin(absl::Duration patience);
  absl::Status Say(const std::string& command, absl::Duration patience) const;
  absl::Status Run(const char* flag, int input, absl::Duration patience) const;
  std::string PipeDirectory() const { return directory_ + "/pipe"; }

  const std::string program_;
  const std::string directory_;
  bool runs_ = false;
};

}  // namespace pelab::agent
