// The final weights as safetensors: the names and shapes of docs/formats.md, float32.
#pragma once

#include <filesystem>
#include <string>

#include "worker/trainer/model/parameters.h"
#include "worker/trainer/protocol/files.h"

namespace pelab::trainer {

inline constexpr char kWeightsName[] = "weights.safetensors";

// Replaces workdir/weights.safetensors atomically; `spec_json` (canonical) is kept in its metadata. Throws
// TrainerError(kIo).
FileInfo WriteWeights(const std::filesystem::path& workdir, const std::string& spec_json,
                      const ParameterSet& parameters);

}  // namespace pelab::trainer
