// What a checkpoint says of itself: its metadata, without its tensors. The rest of it is the
// trainer's (worker/trainer/train/checkpoint.h).
#pragma once

#include <string>

#include "absl/status/statusor.h"

namespace pelab::agent {

inline constexpr char kCheckpointName[] = "checkpoint.safetensors";

struct CheckpointFile {
  int epoch = 0;     // the next to run
  std::string spec;  // canonical JSON of the job
};

// NOT_FOUND where there is none, DATA_LOSS where the file is no checkpoint.
absl::StatusOr<CheckpointFile> ReadCheckpointFile(const std::string& path);

}  // namespace pelab::agent
