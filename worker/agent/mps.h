// NVIDIA's Multi-Process Service (MPS): it lets the kernels of several processes run on a GPU at
// the same time. Without it the processes take turns.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace pelab::agent {

// The program that starts an MPS control daemon and talks to it. nullopt if this host lacks it, or
// if this host already has a daemon that trainers find by themselves: the environment names that
// daemon, or it listens in `host_directory`, the default place of NVIDIA's programs.
std::optional<std::string> MpsProgram(const std::string& host_directory = "/tmp/nvidia-mps");

// The directory of a worker's own daemon: inside its work directory (absolute). If the paths of the
// sockets would be too long there: a directory of its own in TMPDIR or /tmp.
std::string MpsDirectory(const std::string& work_dir, const std::string& worker_id);

// A control daemon that serves only this worker's trainers. If an earlier worker left its daemon in
// the directory, Start ends that daemon first. Not thread-safe.
class Mps {
 public:
  // Errors say why the daemon could not start. FAILED_PRECONDITION if the directory belongs to
  // another user.
  static absl::StatusOr<std::unique_ptr<Mps>> Start(std::string program, std::string directory,
                                                    absl::Duration patience = absl::Seconds(10));
  ~Mps();  // ends the daemon
  Mps(const Mps&) = delete;
  Mps& operator=(const Mps&) = delete;

  // The environment variable to set for trainers.
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
