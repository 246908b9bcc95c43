// A model's weights in the safetensors format, as float32, with the names and shapes of
// docs/formats.md.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "worker/trainer/parameters/parameters.h"
#include "worker/trainer/protocol/files.h"

namespace pelab::trainer {

inline constexpr char kWeightsName[] = "weights.safetensors";

// Replaces workdir/weights.safetensors atomically and stores `spec_json` (canonical) in its
// metadata. Throws TrainerError(kIo).
FileInfo WriteWeights(const std::filesystem::path& workdir, const std::string& spec_json,
                      const ParameterSet& parameters, std::int64_t member = 0);

// Reads such a file into `parameters`, which must be declared by the model of `spec_json` and
// materialized. Throws TrainerError: kIo if the file cannot be read or is damaged, kBadSpec if the
// weights belong to another job or model. The message names the first difference.
void ReadWeights(const std::filesystem::path& path, const std::string& spec_json,
                 ParameterSet* parameters);

}  // namespace pelab::trainer
