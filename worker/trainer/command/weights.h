// A model's weights as safetensors: the names and shapes of docs/formats.md, float32.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "worker/trainer/parameters/parameters.h"
#include "worker/trainer/protocol/files.h"

namespace pelab::trainer {

inline constexpr char kWeightsName[] = "weights.safetensors";

// Replaces workdir/weights.safetensors atomically; `spec_json` (canonical) is kept in its metadata. Throws
// TrainerError(kIo).
FileInfo WriteWeights(const std::filesystem::path& workdir, const std::string& spec_json,
                      const ParameterSet& parameters, std::int64_t member = 0);

// Reads such a file into `parameters`, which are materialised and declared by the model of `spec_json`. Throws
// TrainerError: kIo for a file that cannot be read or is damaged, kBadSpec for the weights of another job or model,
// naming the first thing that differs.
void ReadWeights(const std::filesystem::path& path, const std::string& spec_json,
                 ParameterSet* parameters);

}  // namespace pelab::trainer
