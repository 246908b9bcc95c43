// Everything that may be asked of the store, as values. A write that the domain refuses (a late
// token, a job that was cancelled meanwhile) is answered in its result and spoils no other write of
// its batch. Times are Unix milliseconds.
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
// A worker says hello: its row, and what the database says of the attempts that it holds.
struct WorkerHello {
  std::string worker_id;
  std::string name;  // what people call it; empty: its host
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
  std::string drain;  // finish, checkpoint or kill; empty: it takes jobs
};
// A worker takes no more jobs (`drain` is finish, checkpoint or kill), or takes them again (empty).
struct DrainWorker {
  // Its id, 6 first characters of it or more, or its name or host; one worker alone.
  std::string worker;
  std::string drain;
};
struct WorkerDrained {
  std::string refused;  // why not, for people; nothing else is set then
  std::string worker_id;
  std::string name;
  std::string host;
  int busy_slots = 0;
  int attempts = 0;  // open on them
  bool changed = false;
};
// `state` is online, draining or offline; empty: as it is.
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
  std::optional<Assignment> assignment;  // empty: the job is not queued any more
  bool paused = false;                   // or it is, but every sweep that claims it is paused
};

struct Started {
  int start_epoch = 0;
  int epochs = 0;
  std::string environment_json;
  std::optional<Execution> execution;
  bool better_alone = false;  // than as one batch with others, as its trainer has measured
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
// One head, or what a matrix has in its place.
struct AblatedHead {
  std::int64_t correct = 0;
  std::int64_t lost = 0;    // right intact, wrong ablated
  std::int64_t gained = 0;  // wrong intact, right ablated
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
  // layers x heads, row-major; nullopt where an entry does not exist.
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
  state::Outcome outcome = state::Outcome::kSucceeded;  // or failed, preempted, cancelled
  state::ErrorKind error_kind = state::ErrorKind::kNone;
  std::string error;
  double wall_seconds = 0;
  std::string warning = {};  // what a success lacks, for people
};
// One fact of an attempt, checked against (attempt_id, token, sequence) in the transaction that
// stores it. `sequence` must be one more than the last stored.
struct AttemptEvent {
  std::int64_t attempt_id = 0;
  std::uint64_t token = 0;
  std::uint64_t sequence = 0;
  std::variant<Started, Epoch, HeadAblation, AnalysisResult, Artifact, Checkpoint, Finished> body;
  std::int64_t now = 0;
  double jitter = 0.75;  // of a back-off, in [0.5, 1)
};
// Ends an attempt from this side: its lease ran out, or its worker holds it no more.
struct EndAttempt {
  std::int64_t attempt_id = 0;
  state::Event event = state::Event::kLose;
  std::string error;
  std::int64_t now = 0;
};

// How a job goes on after an attempt ended.
struct JobChange {
  std::int64_t job_id = 0;
  state::JobState state = state::JobState::kQueued;
  state::Outcome outcome = state::Outcome::kLost;
  state::ErrorKind error = state::ErrorKind::kNone;
  std::optional<ReadyJob> ready;  // where it is queued again
};
struct EventStored {
  enum Status {
    kStored,
    kDuplicate,   // stored before
    kGap,         // the worker has to resend from `acknowledged` + 1
    kSuperseded,  // the attempt has ended, or never was
  };
  Status status = kSuperseded;
  std::int64_t attempt_id = 0;
  std::uint64_t acknowledged = 0;
  bool started = false;             // the trainer said hello
  bool better_alone = false;        // and that: than as one batch with others
  std::optional<JobChange> change;  // the attempt ended by this event
};

// Lossy; the last kKeptLogBytes of an attempt stay.
inline constexpr std::int64_t kKeptLogBytes = std::int64_t{256} * 1024;
struct AppendLog {
  std::int64_t attempt_id = 0;
  std::uint64_t token = 0;
  std::uint64_t offset = 0;
  std::string data;
};

// Files -----------------------------------------------------------------------------------------

// A file of an attempt is whole on disk; it stays until an event names it or the attempt ends.
struct RecordUpload {
  std::int64_t attempt_id = 0;
  std::uint64_t token = 0;
  std::string sha256;
};
struct UploadRecorded {
  bool accepted = false;  // false: the attempt has ended, or never was
};
// Which of these hashes no row names.
struct FindUnused {
  std::vector<std::string> sha256s;
};
// Gives up checkpoints, the oldest first, until their files hold `bytes`.
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
  int attempt = 0;  // its number, from 1
  std::int64_t created_at = 0;
  std::variant<HeadAblation, AnalysisResult> body;
};
struct ImportedFile {
  int attempt = 0;
  Artifact artifact;  // whose file is there already, and held
};
// A job that was trained for another database, whole. Left alone where its key is trained or being
// trained here.
struct ImportJob {
  NewCell cell;  // without an ordinal
  std::optional<std::string> device;
  std::optional<double> wall_seconds;
  std::optional<std::string> execution_json;
  std::int64_t created_at = 0;
  std::int64_t ended_at = 0;
  std::vector<ImportedWorker> workers;
  std::vector<ImportedAttempt> attempts;  // by number from 1
  std::vector<Epoch> epochs;              // the accepted line
  std::vector<ImportedAnalysis> analyses;
  std::vector<ImportedFile> files;
};
struct JobImported {
  enum Verdict { kStored, kPresent, kInFlight };
  std::string refused;  // what no honest database holds; nothing is stored
  Verdict verdict = kStored;
  std::int64_t job_id = 0;
  int generation = 0;
};

// Some cells of a sweep of another database, whose jobs were imported before. The sweep is found by
// its token, and made with its first cells; it is kept as cancelled until the slice that is `last`
// finishes it.
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
  bool finished = false;  // it stands as finished
  bool settled = false;   // it is here already, and is left as it is
  std::int64_t jobs = 0;  // of these cells that are trained here
  std::int64_t missing = 0;
};

struct Nothing {};  // the result of writes that have none

using Write = std::variant<SubmitSweep, ExpandSlice, CancelSweep, DropSlice, CancelJob, SteerSweep,
                           LabelSweep, DeleteSweep, DeleteSlice, CountDeletion, RetrySlice,
                           RetryJob, ExtendSweep, Analyse, WorkerHello, WorkerSeen, DrainWorker,
                           CreateAttempt, AttemptEvent, EndAttempt, AppendLog, RecordUpload,
                           FindUnused, DropCheckpoints, ImportJob, ImportSweep>;
using WriteResult =
    std::variant<Nothing, SweepStored, SliceStored, Cancelled, SweepSteered, SweepLabelled,
                 SweepDeleted, DeletionCounted, Retried, SweepExtended, Analysed, WorkerStored,
                 WorkerDrained, AttemptCreated, EventStored, UploadRecorded, Unused, JobImported,
                 SweepImported>;

// Roughly what a write holds in memory; what bounded queues count.
std::size_t ByteSize(const Write& write);

}  // namespace pelab::store
