// The file of an own encoding (docs/own-encodings.md) and what the job says about it. No LibTorch.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/experiment/job.h"
#include "worker/trainer/config/config.h"

namespace pelab::trainer {

struct OwnSource {
  std::string name;   // the job's pe.encoding
  std::string bytes;  // the file; its SHA-256 is the job's pe.file
  std::vector<std::string> methods;
  bool causal_only = false;
  std::vector<std::pair<std::string, std::int64_t>> sizes;  // for the module's `configure`
  std::vector<std::pair<std::string, double>> options;      // likewise

  bool Has(const std::string& method) const;
};

// Reads the file that the job names. Throws TrainerError: kIo if it cannot be read, kBadSpec if it
// is another file.
OwnSource ReadOwnSource(const experiment::Job& job, const ModelConfig& config);

// Compares the declaration inside the file with the job. Throws TrainerError(kBadSpec).
void CheckDeclaration(const std::string& declaration, const OwnSource& source);

// Throws TrainerError(kBadSpec): "encoding NAME: PROBLEM".
[[noreturn]] void FailOwn(const std::string& name, const std::string& problem);

}  // namespace pelab::trainer
