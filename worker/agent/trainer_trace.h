// Follows the lines of one trainer about one job and derives how the attempt ended. No I/O and no
// clock: a pure state machine over parsed lines.
#pragma once

#include <optional>
#include <set>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/base/process.h"
#include "core/event/check.h"
#include "core/event/job_facts.h"
#include "core/event/trainer_line.h"
#include "pelab/v1/fleet.pb.h"

namespace pelab::agent {

// Why the daemon ends a trainer. A later reason replaces an earlier one only if it is further down
// in this list.
enum class StopReason {
  kNone,
  kShutdown,  // the daemon ends: the next daemon does the rest
  kPreempt,   // a drain; the checkpoint is kept
  kCancel,
  kSupersede,  // a newer attempt has replaced this one, whose events no longer count
};

// The exit status of a trainer that stopped on SIGTERM and kept its checkpoint.
inline constexpr int kExitStopped = 75;

// Not thread-safe.
class TrainerTrace {
 public:
  explicit TrainerTrace(const v1::Assignment& assignment);

  // Returns the event to spool for this line, if any. INVALID_ARGUMENT if the line cannot follow
  // the earlier ones: a missing or repeated epoch, a start after the highest allowed epoch, an
  // analysis that was not asked for, results of another model or data set than the job's, or an end
  // before all work is done.
  absl::StatusOr<std::optional<v1::Event>> Accept(event::TrainerLine line);

  const std::optional<event::DoneLine>& done() const { return done_; }
  // The next epoch to run after the newest checkpoint that the trainer has kept; 0 if there is
  // none.
  int checkpoint() const { return checkpoint_; }

  // Returns how the attempt ended. `output` is the first error in the trainer's output.
  // `last_words` is the end of its standard error; it is quoted if the trainer died without saying
  // why.
  v1::Finished Conclude(const ExitStatus& exit, StopReason reason, const absl::Status& output,
                        absl::string_view last_words, double wall_seconds) const;

 private:
  absl::Status AcceptFact(const v1::Event& event);
  absl::Status AcceptAnalysis(const event::AnalysisId& analysis);
  absl::Status AcceptDone() const;
  absl::Status AcceptCheckpoint(const event::CheckpointLine& line);

  void OnUnknown(const std::string& name);
  absl::Status CheckStart(const v1::Started& started) const;

  const int max_start_epoch_;
  const bool analyses_only_;
  const std::optional<v1::Execution> execution_;
  const std::optional<event::JobFacts> facts_;
  std::multiset<event::AnalysisId> missing_analyses_;
  bool started_ = false;
  int next_epoch_ = 0;
  int epochs_ = 0;
  int checkpoint_ = 0;
  int unknown_ = 0;  // number of unknown events
  std::optional<event::DoneLine> done_;
  std::optional<event::ErrorLine> error_;
};

// The outcome of an attempt that an earlier daemon left unfinished.
v1::Finished InterruptedByDaemon();
v1::Finished Failed(state::ErrorKind kind, absl::string_view message);

}  // namespace pelab::agent
