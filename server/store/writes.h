// Every write that the store accepts, as values. A write that the domain refuses (an outdated
// token, a job that was cancelled meanwhile) reports this in its result and does not affect the
// other writes of its batch. Times are Unix milliseconds.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "core/state/state.h"
#include "server/store/job_values.h"
#include "server/store/sweep_values.h"

namespace pelab::store {

// Workers ---------------------------------------------------------------------------------------

struct Held {
  std::int64_t attempt_id = 0;
  std::uint64_t token = 0;
  int slot = -1;
};
// A worker's hello. Stores its row, and compares the attempts that it holds with the database.
struct WorkerHello {
  std::string worker_id;
  std::string name;  // display name; empty: the host
  std::string host;
  std::string version;
  std::string slots_json;
  int slots = 0;
  std::string capabilities_json;
  std::vector<Held> held;
  std::int64_t now = 0;
};
struct HeldStored {
  std::int64_t attempt_id = 0;
  bool accepted = false;
  std::uint64_t acknowledged = 0;
};
struct WorkerStored {
  std::vector<HeldStored> held;
  std::string drain;  // finish, checkpoint or kill; empty: the worker accepts jobs
};
// Makes a worker stop accepting jobs (`drain` is finish, checkpoint or kill), or accept them again
// (empty).
struct DrainWorker {
  // Its id, the first 6 or more characters of it, its name or its host. Must fit one worker only; a
  // full id or a unique name takes precedence.
  std::string worker;
  std::string drain;
};
struct WorkerDrained {
  std::string refused;  // the reason for a refusal, for people; nothing else is set then
  std::string worker_id;
  std::string name;
  std::string host;
  int busy_slots = 0;
  int attempts = 0;  // open attempts of the worker
  bool changed = false;
};
// Records when a worker was last seen. `state` is online, draining or offline; empty: unchanged.
struct WorkerSeen {
  std::string worker_id;
  std::string state;
  std::int64_t now = 0;
};

// Attempts --------------------------------------------------------------------------------------

struct CreateAttempt {
  std::int64_t job_id = 0;
  std::string worker_id;
  int slot = 0;
  std::string device;
  std::uint64_t token = 0;
  std::int64_t now = 0;
};
struct AttemptCreated {
  std::optional<Assignment> assignment;  // empty: the job is not queued any more, or `paused`
  // The job is queued, but no sweep that claims it lets it start: all are paused or being
  // cancelled.
  bool paused = false;
};

struct Started {
  int start_epoch = 0;
  int epochs = 0;
  std::string environment_json;
  std::optional<Execution> execution;
  // The trainer measured that it computes this faster alone than as one batch with others.
  bool better_alone = false;
};
struct Epoch {
  int epoch = 0;
  double train_loss = 0;
  std::int64_t train_correct = 0;
  std::int64_t train_total = 0;
  double test_loss = 0;
  std::int64_t test_correct = 0;
  std::int64_t test_total = 0;
  double learning_rate = 0;
  double seconds = 0;
};
// An entry of a head ablation: the effect of one head, or of what the target puts in its place.
struct AblatedHead {
  std::int64_t correct = 0;
  std::int64_t lost = 0;    // examples that are right intact and wrong ablated
  std::int64_t gained = 0;  // examples that are wrong intact and right ablated
  double nll = 0;           // mean over the scored examples, in nats
  double nll_standard_error = 0;
};
struct HeadAblation {
  int version = 0;
  std::string parameters_json;
  int layers = 0;
  int heads = 0;
  std::int64_t total = 0;
  std::int64_t intact_correct = 0;
  double intact_nll = 0;
  double chance = 0;
  // Shape layers x heads, row-major; nullopt if an entry does not exist.
  std::vector<std::optional<AblatedHead>> entries;
  double seconds = 0;
};
struct AnalysisResult {
  std::string name;
  int version = 0;
  std::string parameters_json;
  std::string result_json;
  double seconds = 0;
};
struct Artifact {
  std::string name;
  std::string sha256;
  std::uint64_t bytes = 0;
};
struct Finished {
  state::Outcome outcome = state::Outcome::kSucceeded;  // or kFailed, kPreempted, kCancelled
  state::ErrorKind error_kind = state::ErrorKind::kNone;
  std::string error;
  double wall_seconds = 0;
  std::string warning = {};  // for people: what is missing although the attempt succeeded
};
// One fact about an attempt. (attempt_id, token, sequence) is checked in the transaction that
// stores it. `sequence` must be the last stored one plus 1.
struct AttemptEvent {
  std::int64_t attempt_id = 0;
  std::uint64_t token = 0;
  std::uint64_t sequence = 0;
  std::variant<Started, Epoch, HeadAblation, AnalysisResult, Artifact, Checkpoint, Finished> body;
  std::int64_t now = 0;
  double jitter = 0.75;  // factor for a back-off, in [0.5, 1)
};
// Ends an attempt by the coordinator's decision: its lease ran out, or its worker no longer holds
// it.
struct EndAttempt {
  std::int64_t attempt_id = 0;
  state::Event event = state::Event::kLose;
  std::string error;
  std::int64_t now = 0;
};

// The state of a job after an attempt ended.
struct JobChange {
  std::int64_t job_id = 0;
  state::JobState state = state::JobState::kQueued;
  state::Outcome outcome = state::Outcome::kLost;
  state::ErrorKind error = state::ErrorKind::kNone;
  std::optional<ReadyJob> ready;  // set if the job is queued again
};
struct EventStored {
  enum Status {
    kStored,
    kDuplicate,   // was stored before
    kGap,         // the worker must resend from `acknowledged` + 1
    kSuperseded,  // the attempt has ended or does not exist, or the event ended it as invalid
  };
  Status status = kSuperseded;
  std::int64_t attempt_id = 0;
  std::uint64_t acknowledged = 0;
  bool started = false;  // the event was the trainer's hello
  // The hello said that the job is faster alone than as one batch with others.
  bool better_alone = false;
  std::optional<JobChange> change;  // set if the event ended the attempt
};

// Appends to an attempt's log. Lossy: only the last kKeptLogBytes of an attempt are kept.
inline constexpr std::int64_t kKeptLogBytes = std::int64_t{256} * 1024;
struct AppendLog {
  std::int64_t attempt_id = 0;
  std::uint64_t token = 0;
  std::uint64_t offset = 0;
  std::string data;
};

// Files -----------------------------------------------------------------------------------------

// Records that a file of an attempt is complete on disk. The file stays until an event names it or
// the attempt ends.
struct RecordUpload {
  std::int64_t attempt_id = 0;
  std::uint64_t token = 0;
  std::string sha256;
};
struct UploadRecorded {
  bool accepted = false;  // false: the attempt has ended or does not exist
};
// Finds out which of these hashes no row refers to.
struct FindUnused {
  std::vector<std::string> sha256s;
};
// Deletes checkpoints, oldest first, until the deleted ones add up to `bytes`.
struct DropCheckpoints {
  std::uint64_t bytes = 0;
};
struct Unused {
  std::vector<std::string> sha256s;
};

// Imports ---------------------------------------------------------------------------------------

struct ImportedAttempt {
  std::string worker_id;
  int slot = 0;
  std::string device;
  std::string analyses_json;
  std::optional<int> start_epoch;
  std::optional<std::string> environment_json;
  state::Outcome outcome = state::Outcome::kSucceeded;
  std::optional<std::string> error_kind;
  std::optional<std::string> error;
  std::int64_t started_at = 0;
  std::int64_t ended_at = 0;
};
struct ImportedWorker {
  std::string worker_id;
  std::string host;
  std::string version;
  std::string slots_json;
  int slots = 0;
  std::int64_t last_seen_at = 0;
};
struct ImportedAnalysis {
  int attempt = 0;  // number of the attempt, from 1
  std::int64_t created_at = 0;
  std::variant<HeadAblation, AnalysisResult> body;
};
struct ImportedFile {
  int attempt = 0;
  Artifact artifact;  // its file is present already and held
};
// A complete job that was trained for another database. If its key is trained, queued or running
// here, nothing is changed.
struct ImportJob {
  NewCell cell;  // the ordinal is not used
  std::optional<std::string> device;
  std::optional<double> wall_seconds;
  std::optional<std::string> execution_json;
  std::int64_t created_at = 0;
  std::int64_t ended_at = 0;
  std::vector<ImportedWorker> workers;
  std::vector<ImportedAttempt> attempts;  // by number from 1
  std::vector<Epoch> epochs;              // the accepted curve
  std::vector<ImportedAnalysis> analyses;
  std::vector<ImportedFile> files;
};
struct JobImported {
  enum Verdict { kStored, kPresent, kInFlight };
  std::string refused;  // an inconsistency that no intact database contains; nothing is stored
  Verdict verdict = kStored;
  std::int64_t job_id = 0;
  int generation = 0;
};

// Some cells of a sweep of another database, whose jobs were imported before. The sweep is found by
// its token. It is created with its first cells and counts as cancelled until a slice with `finish`
// is applied.
struct ImportSweep {
  std::string token;
  std::string name;
  std::string protocol;
  std::string document;
  std::string file_name;
  std::string overrides_json;
  std::string analyses_json;
  std::string resources_json;
  std::string extensions_json;
  int priority = 0;
  std::uint64_t cells = 0;
  std::int64_t created_at = 0;
  std::vector<std::pair<std::uint64_t, std::string>> jobs;  // ordinals and keys
  bool finish = false;  // every cell is trained here: set with the last slice
};
struct SweepImported {
  std::int64_t sweep_id = 0;  // 0: none of its jobs is here
  bool changed = false;
  bool finished = false;  // the sweep is here and not cancelled
  bool settled = false;   // the sweep was here already and not cancelled; it is left as it is
  std::int64_t jobs = 0;  // cells of this slice that are trained here
  std::int64_t missing = 0;
};

struct Nothing {};  // Result of writes that have none.

using Write = std::variant<SubmitSweep, ExpandSlice, CancelSweep, DropSlice, CancelJob,
                           ControlSweep, LabelSweep, DeleteSweep, DeleteSlice, CountDeletion,
                           RetrySlice, RetryJob, ExtendSweep, Analyze, WorkerHello, WorkerSeen,
                           DrainWorker, CreateAttempt, AttemptEvent, EndAttempt, AppendLog,
                           RecordUpload, FindUnused, DropCheckpoints, ImportJob, ImportSweep>;
using WriteResult =
    std::variant<Nothing, SweepStored, SliceStored, Cancelled, SweepControlled, SweepLabelled,
                 SweepDeleted, DeletionCounted, Retried, SweepExtended, Analyzed, WorkerStored,
                 WorkerDrained, AttemptCreated, EventStored, UploadRecorded, Unused, JobImported,
                 SweepImported>;

// Approximate memory that a write occupies; bounded queues count it.
std::size_t ByteSize(const Write& write);

}  // namespace pelab::store
