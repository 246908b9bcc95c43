// What one trainer has said so far, and how its attempt ended. No I/O, no clock: a pure state
// machine over parsed lines.
#pragma once

#include <optional>
#include <set>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/base/process.h"
#include "pelab/v1/fleet.pb.h"
#include "worker/agent/trainer_events.h"

namespace pelab::agent {

// Why the daemon ends a trainer; a later reason overrules an earlier one only if it is further
// down.
enum class StopReason {
  kNone,
  kShutdown,  // the daemon ends: what is not done is left to the next one
  kPreempt,   // a drain, with the checkpoint kept
  kCancel,
  kSupersede,  // nothing of it counts any more
};

// The exit status of a trainer that SIGTERM stopped with a checkpoint kept.
inline constexpr int kExitStopped = 75;

// Not thread-safe.
class TrainerTrace {
 public:
  explicit TrainerTrace(const v1::Assignment& assignment);

  // The event to spool for this line, if any. INVALID_ARGUMENT where the line cannot follow what
  // came before: an epoch that is missing or twice, a start beyond what was allowed, an end before
  // the end.
  absl::StatusOr<std::optional<v1::Event>> Accept(TrainerLine line);

  const std::optional<DoneLine>& done() const { return done_; }
  // The newest checkpoint that the trainer has kept: the next epoch to run, 0 where there is none.
  int checkpoint() const { return checkpoint_; }

  // How the attempt ended. `output` is the first thing that was wrong with the trainer's lines;
  // `last_words` is the end of its standard error, quoted where it died without saying why.
  v1::Finished Conclude(const ExitStatus& exit, StopReason reason, const absl::Status& output,
                        absl::string_view last_words, double wall_seconds) const;

 private:
  absl::Status AcceptFact(const v1::Event& event);
  absl::Status AcceptDone() const;
  absl::Status AcceptCheckpoint(const CheckpointLine& line);

  void OnUnknown(const std::string& name);
  absl::Status CheckStart(const v1::Started& started) const;

  const int max_start_epoch_;
  const bool analyses_only_;
  const std::optional<v1::Execution> execution_;
  std::multiset<std::string> missing_analyses_;
  bool started_ = false;
  int next_epoch_ = 0;
  int epochs_ = 0;
  int checkpoint_ = 0;
  int unknown_ = 0;  // events
  std::optional<DoneLine> done_;
  std::optional<ErrorLine> error_;
};

// How an attempt ended that a daemon left behind unfinished.
v1::Finished InterruptedByDaemon();
v1::Finished Failed(v1::ErrorKind kind, absl::string_view message);

}  // namespace pelab::agent
