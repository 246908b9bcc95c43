// The daemon's own directory:
//
//   lock                          held with flock: one daemon per directory
//   worker_id                     a UUID, made at the first start
//   attempts/ID/attempt.json      the coordinator's assignment
//               job.json          the trainer's --spec file
//               spool             events until they are acknowledged
//               log, log.1        the trainer's standard error, the last 256 to 512 KiB
//               upload.json       present if training is done and the weights are not uploaded yet
//               upload.safetensors, checkpoint.safetensors
//                                 a checkpoint on its way to, or from, the coordinator
//               encoding.pt       a file on its way to files/
//               weights.safetensors
//                                 kept weights that an analysis reads
//   jobs/KEY.JOB/                 the trainer's --workdir: weights, and checkpoints for a later
//                                 attempt on this host. Removed when the job's end is acknowledged,
//                                 or after 7 days without an attempt
//   kept/KEY.JOB/                 weights that could not be uploaded to the coordinator
//   files/SHA256                  files of own encodings and own data (file_cache.h). Removed at
//                                 the start of the daemon if no attempt used them for 30 days
//   mps/                          sockets and logs of this worker's own MPS, while it runs
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/base/unique_fd.h"
#include "core/event/trainer_line.h"
#include "pelab/v1/fleet.pb.h"

namespace pelab::agent {

// The paths and files above. Movable. Thread-safe for different attempts.
class WorkDir {
 public:
  // Creates the directory if needed, locks it, and reads or makes its worker_id.
  // FAILED_PRECONDITION if another daemon uses the directory.
  static absl::StatusOr<WorkDir> Open(const std::string& path);

  const std::string& path() const { return path_; }  // absolute
  const std::string& worker_id() const { return worker_id_; }
  std::string AttemptDir(std::int64_t attempt_id) const;
  // INVALID_ARGUMENT if the key is not 64 lower-case hexadecimal digits.
  absl::StatusOr<std::string> JobDir(const v1::Assignment& assignment) const;

  // Writes attempt.json and job.json.
  absl::Status SaveAssignment(const v1::Assignment& assignment) const;
  // Reads attempt.json: ids, token, key, label, names of the analyses and max_start_epoch. The
  // other fields stay empty. DATA_LOSS if the file is damaged or is of another attempt.
  absl::StatusOr<v1::Assignment> LoadAssignment(std::int64_t attempt_id) const;
  // The ids of the attempts that have a directory, in ascending order.
  std::vector<std::int64_t> ListAttempts() const;
  absl::Status RemoveAttempt(std::int64_t attempt_id) const;

  absl::Status SaveUpload(std::int64_t attempt_id, const event::DoneLine& done) const;
  std::optional<event::DoneLine> LoadUpload(std::int64_t attempt_id) const;

  // Moves `file` from the job's directory to kept/ and returns its new path.
  absl::StatusOr<std::string> Keep(const v1::Assignment& assignment, const std::string& file) const;

  // Removes the directories of jobs that had no attempt here for 7 days.
  void RemoveOldJobs() const;

 private:
  WorkDir(std::string path, UniqueFd lock, std::string worker_id)
      : path_(std::move(path)), lock_(std::move(lock)), worker_id_(std::move(worker_id)) {}
  std::string path_;  // absolute
  UniqueFd lock_;
  std::string worker_id_;
};

// The JSON document for `pelab-trainer run --spec`.
std::string JobDocument(const v1::Assignment& assignment);
// The job name in the trainer's lines.
std::string JobName(const v1::Assignment& assignment);

}  // namespace pelab::agent
