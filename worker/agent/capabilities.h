// What the trainer beside this daemon can run.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace pelab::agent {

struct Capabilities {
  std::string json;  // as `pelab-trainer capabilities` printed it, on one line
  bool cuda = true;  // false where it says that it sees no CUDA device
  // Variables that it asks for: it starts twice as fast with them.
  std::vector<std::pair<std::string, std::string>> environment;
};

// Runs `trainer capabilities`. Errors say that the trainer is missing, ended badly (with the last
// of its standard error), took longer than `timeout`, or printed something that is not a JSON
// object.
absl::StatusOr<Capabilities> ReadCapabilities(const std::string& trainer,
                                              absl::Duration timeout = absl::Seconds(60));

// `given` (--trainer) where it is not empty, else the sibling pelab-trainer, else the one in PATH.
absl::StatusOr<std::string> FindTrainer(const std::string& given);

}  // namespace pelab::agent
