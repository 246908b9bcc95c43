// The state of a training at an epoch boundary: parameters and AdamW's moments. Nothing else is
// needed, because all randomness is addressed by (seed, step).
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "worker/trainer/protocol/files.h"

namespace pelab::trainer {

inline constexpr char kCheckpointName[] = "checkpoint.safetensors";

struct Checkpoint {
  std::int64_t epoch = 0;  // the next epoch to run
  at::Tensor parameters;   // (count), float32, on the CPU
  at::Tensor first_moment;
  at::Tensor second_moment;
};

// The job and the settings that computed a checkpoint. Training resumes only from a checkpoint of
// the same origin: with another number of threads, for example, the last bits would depend on where
// training was interrupted.
struct CheckpointOrigin {
  std::string spec_json;  // canonical
  std::string execution;  // threads, micro-batch and packing, as text
};

// Replaces workdir/checkpoint.safetensors atomically and stores `origin` in it. Throws
// TrainerError(kIo).
FileInfo WriteCheckpoint(const std::filesystem::path& workdir, const CheckpointOrigin& origin,
                         const Checkpoint& checkpoint);

// Empty if there is no checkpoint or it has another origin. Throws TrainerError(kIo) if it cannot
// be read.
std::optional<Checkpoint> ReadCheckpoint(const std::filesystem::path& workdir,
                                         const CheckpointOrigin& origin);

}  // namespace pelab::trainer
