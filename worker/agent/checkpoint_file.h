// Reads the metadata of a checkpoint, without its tensors. The trainer reads the rest
// (worker/trainer/train/checkpoint.h).
#pragma once

#include <string>

#include "absl/status/statusor.h"

namespace pelab::agent {

inline constexpr char kCheckpointName[] = "checkpoint.safetensors";

struct CheckpointFile {
  int epoch = 0;     // the next epoch to run
  std::string spec;  // the job's canonical JSON
};

// NOT_FOUND if there is no file, DATA_LOSS if the file is not a checkpoint.
absl::StatusOr<CheckpointFile> ReadCheckpointFile(const std::string& path);

}  // namespace pelab::agent
