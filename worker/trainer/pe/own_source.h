// The file of an own encoding (docs/own-encodings.md) and what the job says about it. No LibTorch.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/catalog/catalog.h"
#include "core/experiment/job.h"
#include "worker/trainer/config/config.h"

namespace pelab::trainer {

struct OwnSource {
  std::string name;   // the job's pe.encoding
  std::string bytes;  // the file; its SHA-256 is the job's pe.file
  std::vector<std::string> methods;
  bool causal_only = false;
  std::vector<std::pair<std::string, std::int64_t>> sizes;  // for the module's `configure`
  std::string options;              // the job's pe.options, which only the declaration can read
  catalog::Values values;           // the job's, for what the file needs of them
  bool refuses_not_finite = false;  // a method's result with NaN or infinity is an error

  bool Has(const std::string& method) const;
};

// Reads the file that the job names. Throws TrainerError: kIo if it cannot be read, kBadSpec if it
// is another file.
OwnSource ReadOwnSource(const experiment::Job& job, const ModelConfig& config);

// Compares the declaration inside the file with the job. Returns the options that the module's
// `configure` gets. Throws TrainerError(kBadSpec).
std::vector<std::pair<std::string, double>> CheckDeclaration(const std::string& declaration,
                                                             const OwnSource& source);

// Throws TrainerError(kBadSpec): "encoding NAME: PROBLEM".
[[noreturn]] void FailOwn(const std::string& name, const std::string& problem);

}  // namespace pelab::trainer
