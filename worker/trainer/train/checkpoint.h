// A training's state at an epoch boundary: parameters and AdamW's moments. Nothing else is needed, because all randomness
// is addressed by (seed, step).
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
  std::int64_t epoch = 0;  // the next to run
  at::Tensor parameters;   // (count), float32, on the CPU
  at::Tensor first_moment;
  at::Tensor second_moment;
};

// What computed a checkpoint. Only the same may go on from it: with another number of threads the last bits would depend
// on where the training was interrupted.
struct CheckpointOrigin {
  std::string spec_json;  // canonical
  std::string execution;  // threads, micro-batch and packing, as text
};

// Replaces workdir/checkpoint.safetensors atomically; `origin` is kept with it. Throws TrainerError(kIo).
FileInfo WriteCheckpoint(const std::filesystem::path& workdir, const CheckpointOrigin& origin,
                         const Checkpoint& checkpoint);

// Empty if there is none, or it is of another origin. Throws TrainerError(kIo) for one that cannot be read.
std::optional<Checkpoint> ReadCheckpoint(const std::filesystem::path& workdir,
                                         const CheckpointOrigin& origin);

}  // namespace pelab::trainer
