// The daemon's own directory:
//
//   lock                          held with flock: one daemon a directory
//   worker_id                     a UUID, made at the first start
//   attempts/ID/attempt.json      what the coordinator assigned
//               job.json          what the trainer is given
//               spool             events until they are acknowledged
//               log, log.1        the trainer's standard error, the last 256 to 512 KiB
//               upload.json       training is done, its weights are not with the coordinator yet
//               upload.safetensors, checkpoint.safetensors
//                                 a checkpoint on its way to the coordinator, or from it
//   jobs/KEY.JOB/                 the trainer's --workdir: checkpoints (for a later attempt on this
//   host) and weights;
//                                 removed when the job's end is acknowledged, or after 7 days
//                                 without an attempt
//   kept/KEY.JOB/                 weights that the coordinator had no room for
//   mps/                          sockets and logs of this worker's own MPS, while it runs
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/base/unique_fd.h"
#include "pelab/v1/fleet.pb.h"
#include "worker/agent/trainer_events.h"

namespace pelab::agent {

// The paths and files above. Movable; thread-safe for different attempts.
class WorkDir {
 public:
  // Creates the directory where needed, locks it and reads or makes its worker_id.
  // FAILED_PRECONDITION where another daemon uses it.
  static absl::StatusOr<WorkDir> Open(const std::string& path);

  const std::string& path() const { return path_; }  // absolute
  const std::string& worker_id() const { return worker_id_; }
  std::string AttemptDir(std::int64_t attempt_id) const;
  // INVALID_ARGUMENT where the key is not 64 hexadecimal digits.
  absl::StatusOr<std::string> JobDir(const v1::Assignment& assignment) const;

  absl::Status SaveAssignment(const v1::Assignment& assignment) const;
  absl::StatusOr<v1::Assignment> LoadAssignment(std::int64_t attempt_id) const;
  // Attempts that have a directory, by number.
  std::vector<std::int64_t> ListAttempts() const;
  absl::Status RemoveAttempt(std::int64_t attempt_id) const;

  absl::Status SaveUpload(std::int64_t attempt_id, const DoneLine& done) const;
  std::optional<DoneLine> LoadUpload(std::int64_t attempt_id) const;

  // Moves `file` of the job's directory to kept/ and answers where it is now.
  absl::StatusOr<std::string> Keep(const v1::Assignment& assignment, const std::string& file) const;

  // Removes the directories of jobs that no attempt here has touched for 7 days.
  void RemoveOldJobs() const;

 private:
  WorkDir(std::string path, UniqueFd lock, std::string worker_id)
      : path_(std::move(path)), lock_(std::move(lock)), worker_id_(std::move(worker_id)) {}
  std::string path_;  // absolute
  UniqueFd lock_;
  std::string worker_id_;
};

// The document that `pelab-trainer run --spec` reads.
std::string JobDocument(const v1::Assignment& assignment);
// The name that the trainer's lines carry.
std::string JobName(const v1::Assignment& assignment);

}  // namespace pelab::agent
