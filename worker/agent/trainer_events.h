// From the trainer's JSON Lines (docs/formats.md, "Trainer's JSON Lines") to facts that the
// coordinator stores. Pure but for the file that an `analysis` event names.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <variant>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "pelab/v1/fleet.pb.h"

namespace pelab::agent {

inline constexpr std::size_t kMaxLineBytes = 1 << 20;
inline constexpr std::size_t kMaxAnalysisBytes = 4 << 20;

// hello, epoch, head_ablation, analysis: a body without ids, sequence and time.
struct FactLine {
  v1::Event event;
};
struct CheckpointLine {
  int epoch = 0;  // the next to run
  std::string file;
};
struct DoneLine {
  std::string weights_file;  // relative to the trainer's directory; "" where it kept none
  std::string sha256;
  std::uint64_t bytes = 0;
  double wall_seconds = 0;
};
struct ErrorLine {
  v1::ErrorKind kind = v1::ERROR_KIND_INTERNAL;
  std::string message;
};
// An event that this version does not know.
struct UnknownLine {
  std::string name;
};
using TrainerLine = std::variant<FactLine, CheckpointLine, DoneLine, ErrorLine, UnknownLine>;

// `job` is the name that the line must carry, `directory` the trainer's --workdir. INVALID_ARGUMENT
// says what is wrong with the line: not JSON, a member that is missing or of a wrong type, numbers
// that contradict each other.
absl::StatusOr<TrainerLine> ParseTrainerLine(absl::string_view line, absl::string_view job,
                                             const std::string& directory);

// The same of a trainer that was given several jobs: the line is of one of them.
struct JobLine {
  std::string job;
  TrainerLine line;
};
absl::StatusOr<JobLine> ParseTrainerLine(absl::string_view line,
                                         const std::map<std::string, std::string>& directories);

}  // namespace pelab::agent
