// Asks the trainer on this host what it can run.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace pelab::agent {

class PreloadedTrainer;

struct Capabilities {
  std::string json;      // the output of `pelab-trainer capabilities`, on one line
  bool preload = false;  // it can fork trainers that have loaded LibTorch (preloaded_trainer.h)
  bool cuda = true;      // false if the trainer says that it sees no CUDA device
  // Environment variables that the trainer asks for, so that it need not restart itself.
  std::vector<std::pair<std::string, std::string>> environment;
};

// Runs `trainer capabilities`. An error says that the trainer is missing, ended with a failure
// (with the last part of its standard error), took longer than `timeout`, or printed something that
// is not a JSON object. `preloaded` forks the trainer if it can.
absl::StatusOr<Capabilities> ReadCapabilities(const std::string& trainer,
                                              PreloadedTrainer* preloaded = nullptr,
                                              absl::Duration timeout = absl::Seconds(60));

// The same without the encodings that come from files, so that the coordinator sends no such jobs.
Capabilities WithoutOwnEncodings(Capabilities capabilities);

// The path of the trainer: `given` (--trainer) if it is not empty, else pelab-trainer beside this
// program, else the one in PATH.
absl::StatusOr<std::string> FindTrainer(const std::string& given);

}  // namespace pelab::agent
