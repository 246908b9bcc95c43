// Turns the trainer's JSON Lines (docs/formats.md, "Trainer's JSON Lines") into events that the
// coordinator stores. Pure, except that an `analysis` event may name a file, which is read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <variant>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/state/state.h"
#include "pelab/v1/fleet.pb.h"

namespace pelab::event {

// The most bytes of the result file of an `analysis` event.
inline constexpr std::size_t kAnalysisBytes = 4 << 20;

// A hello, epoch, head_ablation or analysis line. The event has a body only: its ids, sequence
// number and time are not set.
struct FactLine {
  v1::Event event;
};
struct CheckpointLine {
  int epoch = 0;  // the next epoch to run
  std::string file;
};
struct DoneLine {
  std::string weights_file;  // relative to the trainer's directory; "" if it kept no weights
  std::string sha256;
  std::uint64_t bytes = 0;
  double wall_seconds = 0;
};
struct ErrorLine {
  state::ErrorKind kind = state::ErrorKind::kInternal;
  std::string message;
};
// An event whose name this version does not know.
struct UnknownLine {
  std::string name;
};
using TrainerLine = std::variant<FactLine, CheckpointLine, DoneLine, ErrorLine, UnknownLine>;

// Parses one line. `job` is the name that the line must carry, `directory` the trainer's --workdir.
// INVALID_ARGUMENT if the line is not JSON, if a member is missing or has the wrong type, if its
// numbers contradict each other, if the job's name is another one, or if the file of an analysis
// cannot be read or is too long; the message says which.
absl::StatusOr<TrainerLine> ParseTrainerLine(absl::string_view line, absl::string_view job,
                                             const std::string& directory);

// The same for a trainer of several jobs. `directories` maps the name of each job to its --workdir;
// the line must carry one of these names.
struct JobLine {
  std::string job;
  TrainerLine line;
};
absl::StatusOr<JobLine> ParseTrainerLine(absl::string_view line,
                                         const std::map<std::string, std::string>& directories);

}  // namespace pelab::event
