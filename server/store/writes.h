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

namespace pelab::store {

// An analysis as an assignment names it; parameters are RFC 8785 JSON.
struct Analysis {
  std::string name;
  int version = 0;
  std::string parameters_json;
  bool operator==(const Analysis&) const = default;
};

// What of a machine's settings changes the last bits of a result.
struct Execution {
  int threads = 0;
  int micro_batch = 0;  // 0: the whole batch
  int packing = 0;
  bool operator==(const Execution&) const = default;
};

// The file that a job's training leaves for analyses.
inline constexpr char kWeightsName[] = "weights.safetensors";
struct KeptWeights {
  std::string sha256;
  std::uint64_t bytes = 0;
};

// A training's state that a later attempt may go on from; one a job, the newest.
struct Checkpoint {
  int epoch = 0;  // the next to run
  std::string sha256;
  std::uint64_t bytes = 0;
};

// What a job needs of the slot that runs it.
struct Requirement {
  std::string pe;
  int pe_version = 0;
  std::string task;
  int task_version = 0;
  std::string device_kind;  // any | gpu | cpu
  std::uint64_t memory_bytes = 0;
  std::vector<std::pair<std::string, int>> analyses;     // names and versions, each once, sorted
  auto operator<=>(const Requirement&) const = default;  // NOLINT(modernize-use-nullptr): its 0
};

// A live sweep's wish for a job.
struct Claim {
  std::int64_t sweep_id = 0;
  std::int64_t ordinal = 0;  // of the job in that sweep
  bool operator==(const Claim&) const = default;
};

// A queued job as the scheduler keeps it.
struct ReadyJob {
  std::int64_t job_id = 0;
  std::int64_t sweep_id = 0;    // the oldest live sweep that claims it; 0: none does
  std::int64_t ordinal = 0;     // in that sweep
  std::vector<Claim> others;    // further live sweeps that claim it
  std::int64_t not_before = 0;  // 0: at once
  Requirement requirement;
  // Jobs of one configuration differ in their seed alone, and one trainer may take them together
  // where they have computed alike so far; 0: it goes by itself.
  std::int64_t configuration_id = 0;
  std::string execution;  // of its first attempt, as JSON; empty: it had none yet
};

// How a live sweep stands to the others.
struct SweepStanding {
  std::int64_t sweep_id = 0;
  int priority = 0;
  bool paused = false;
  bool operator==(const SweepStanding&) const = default;
};

// What is sent to a worker.
struct Assignment {
  std::int64_t attempt_id = 0;
  std::uint64_t token = 0;
  std::int64_t job_id = 0;
  std::string key;
  int slot = 0;
  std::string pe;
  std::string pe_label;
  std::string task;
  std::int64_t seed = 0;
  std::string spec_json;
  std::vector<Analysis> analyses;  // those that are not stored yet
  int max_start_epoch = 0;
  std::optional<Execution> execution;  // of the job's first attempt, where there was one
  std::optional<KeptWeights> weights;  // set: only the analyses are to run, on these
  std::optional<Checkpoint> checkpoint;
};

// An attempt that has not ended, as the scheduler keeps it.
struct OpenAttempt {
  std::string worker_id;
  ReadyJob job;
  Assignment assignment;
  bool started = false;    // something of it is stored
  bool cancelled = false;  // nobody claims its job any more
};

// Sweeps ----------------------------------------------------------------------------------------

struct NewCell {
  std::uint64_t ordinal = 0;
  std::string key;
  std::string pe_label;
  std::string protocol_label;
  std::int64_t seed = 0;
  std::string spec_json;
  Requirement requirement;
  int epochs = 0;
};
// The jobs of the ordinals [from, next) of a sweep, excluded ones left out. Applied once: where the
// sweep is no longer expanding at `from`, nothing happens.
struct ExpandSlice {
  std::int64_t sweep_id = 0;
  std::uint64_t from = 0;
  std::uint64_t next = 0;
  bool last = false;
  std::vector<NewCell> cells;
  std::int64_t now = 0;
};
struct SliceStored {
  bool applied = false;                    // false: stop expanding, but for
  std::optional<std::uint64_t> resume_at;  // where a sweep that expands stands instead
  std::vector<SweepStanding> standings;    // of the live sweeps that wait for `ready`
  std::vector<ReadyJob> ready;
  // Attempts of jobs that were cancelled and are queued again.
  std::vector<std::int64_t> superseded;
};

// Stores the document in state `expanding`; or, with `go_on`, goes on with the sweep of this name and
// document that is there. A sweep that had ended is then expanded again: what was cancelled of it is
// queued, what is stored stays as it is.
struct SubmitSweep {
  std::string name;
  std::string protocol;
  std::string document;
  std::string file_name;
  std::string overrides_json;
  std::string client_token;
  std::string analyses_json;   // [{"name":…,"version":…,"parameters":{…}}]
  std::string resources_json;  // {"device":…,"memory_bytes":…}
  std::string request_sha256;  // of all that was asked: a token that is used again must repeat it
  int priority = 0;            // of a sweep that goes on: kept where this is 0
  bool fresh = false;
  bool go_on = false;
  std::uint64_t cells = 0;
  // The first of them, for the sweep that is made: a small one is whole with its first write.
  std::optional<ExpandSlice> first;
  std::int64_t now = 0;
};
struct SweepStored {
  enum Refusal {
    kNone,
    kNameTaken,  // with `go_on`: `sweep_id` has the name and another document
    kTokenUsed,  // for another request, which `sweep_id` answers
  };
  std::int64_t sweep_id = 0;
  Refusal refusal = kNone;      // nothing is stored
  bool repeated_token = false;  // the sweep of the first submission
  bool went_on = false;         // with a sweep that was there
  bool reopened = false;        // it had been cancelled, or jobs of it had
  bool expands_again = false;   // from its first cell on
  SliceStored first;            // applied where a sweep was made and `first` was there
};

// Gives a sweep another name, or another note (empty: none).
struct LabelSweep {
  std::int64_t sweep_id = 0;
  std::optional<std::string> name;
  std::optional<std::string> note;
};
struct SweepLabelled {
  bool found = false;
  bool changed = false;
  std::int64_t has_name = 0;  // another sweep that has the name: nothing is changed; 0: none
};

// Deletes a sweep that has ended: nobody sees it from then on. Its jobs that no other sweep has go
// with all of their results, in the DeleteSlices that follow.
struct DeleteSweep {
  std::int64_t sweep_id = 0;
  std::int64_t now = 0;
};
struct DeleteSlice {
  std::int64_t sweep_id = 0;
  std::int64_t now = 0;
};

// From then on no job starts for the sweep, and what runs for it alone is stopped. Its queued jobs
// are dropped by the DropSlices that follow.
struct CancelSweep {
  std::int64_t sweep_id = 0;
  std::int64_t now = 0;
};
// Withdraws some more claims of a cancelled sweep and cancels the jobs that nobody else claims. Goes
// on where the last one stopped, whoever asks.
struct DropSlice {
  std::int64_t sweep_id = 0;
  std::int64_t now = 0;
};
struct CancelJob {  // withdraws every sweep's claim
  std::int64_t job_id = 0;
  std::int64_t now = 0;
};
struct Cancelled {
  bool found = false;
  std::int64_t sweep_id = 0;  // which has no claims any more; 0: only a job was cancelled
  bool more = false;          // a DropSlice has something left to do
  std::int64_t claims_withdrawn = 0;
  std::vector<std::int64_t> jobs;      // that were open and are cancelled now
  std::vector<std::int64_t> attempts;  // that are still open and have to be stopped
};

struct SweepDeleted {
  bool found = false;
  bool live = false;   // nothing is changed
  bool more = false;   // a DeleteSlice has something left to do
  bool waits = false;  // for workers that have yet to stop a job of it
  std::int64_t jobs_deleted = 0;
  std::int64_t jobs_kept = 0;  // that another sweep has
  Cancelled cancelled;         // jobs that were queued or ran for nobody's sweep
};
// Counts what deleting a sweep would delete and keep, from ordinal `from` on, a part at a time.
struct CountDeletion {
  std::int64_t sweep_id = 0;
  std::int64_t from = 0;
};
struct DeletionCounted {
  std::int64_t jobs_deleted = 0;
  std::int64_t jobs_kept = 0;
  std::optional<std::int64_t> next;  // where the next part begins
};

// Changes how a sweep that lives stands to the others; where it has ended, nothing but its priority.
struct SteerSweep {
  std::int64_t sweep_id = 0;
  std::optional<bool> paused;
  std::optional<int> priority;
};
struct SweepSteered {
  bool found = false;
  bool changed = false;
  bool live = false;
  SweepStanding standing;
};

// Queues the failed jobs among some of a sweep's, from ordinal `from` on. Idempotent.
struct RetrySlice {
  std::int64_t sweep_id = 0;
  std::int64_t from = 0;
  std::int64_t now = 0;
};
// Queues one job that failed or, unless `failed_only`, was cancelled.
struct RetryJob {
  std::int64_t job_id = 0;
  bool failed_only = false;
  std::int64_t now = 0;
};
struct Retried {
  std::string refused;  // why not, for people; nothing else is set then
  std::int64_t queued = 0;
  std::int64_t nothing = 0;          // jobs that need nothing
  std::optional<std::int64_t> next;  // of a sweep: where the next slice begins
  SliceStored jobs;                  // what the scheduler has to know
};

// Adds seeds: `cells` is the sweep's size with them. Applied where the sweep has exactly `known`
// extensions, which its caller has seen; expansion goes on as after a submission.
struct ExtendSweep {
  std::int64_t sweep_id = 0;
  std::size_t known = 0;
  std::string seeds;  // "5..9,12"
  std::uint64_t cells = 0;
};
struct SweepExtended {
  bool applied = false;        // false: it was extended meanwhile, or cancelled
  std::uint64_t expanded = 0;  // cells that are expanded already: where the expander goes on
  SliceStored jobs;            // where it lives again: those that wait already
};

// Adds analyses to jobs: those that are trained are queued again, the others get them after their
// training. Idempotent; the caller cuts long lists into several writes.
struct Analyse {
  std::vector<std::int64_t> jobs;
  std::int64_t sweep_id = 0;  // which the jobs were taken from; 0: they were named singly
  std::vector<Analysis> analyses;
  std::int64_t now = 0;
};
struct Analysed {
  std::int64_t queued = 0;
  std::int64_t stored = 0;
  std::int64_t not_possible = 0;
  std::int64_t after_training = 0;
  std::int64_t not_trained = 0;
  std::vector<std::string> reasons;  // of the jobs that are not possible or not trained
  SliceStored jobs;                  // what the scheduler has to know
};

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
