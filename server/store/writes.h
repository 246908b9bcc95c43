// Every write that the store accepts, as values. A write that the domain refuses (an outdated
// token, a job that was cancelled meanwhile) reports this in its result and does not affect the
// other writes of its batch. Times are Unix milliseconds.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "core/state/state.h"
#include "pelab/v1/fleet.pb.h"
#include "pelab/v1/transfer.pb.h"
#include "server/limits.h"
#include "server/store/access_values.h"
#include "server/store/job_values.h"
#include "server/store/queue_values.h"
#include "server/store/sheet_values.h"
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
  std::string principal;  // that says hello; empty: there are none, and nobody is refused
  std::int64_t now = 0;
};
struct HeldStored {
  std::int64_t attempt_id = 0;
  bool accepted = false;           // false: it is not open any more, or was another worker's
  std::uint64_t acknowledged = 0;  // the sequence number of its last stored event
};
struct WorkerStored {
  std::string refused;  // the id is another principal's worker; nothing else is set then
  std::vector<HeldStored> held;
  v1::Drain::Mode drain = v1::Drain::RESUME;
};
// Makes a worker stop accepting jobs, or accept them again.
struct DrainWorker {
  // Its id, the first 6 or more characters of it, its name or its host. Must fit one worker only; a
  // full id or a unique name takes precedence.
  std::string worker;
  v1::Drain::Mode drain = v1::Drain::FINISH;
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
  std::string principal;      // whose budget pays for it; empty: nobody's
  std::int64_t sweep_id = 0;  // for which it runs; its trace is the attempt's. 0: for none
  std::string span_id;        // of the attempt, if the sweep has a trace
  std::int64_t now = 0;
};
struct AttemptCreated {
  // Null: the job is not queued any more, or `paused`.
  std::shared_ptr<Assignment> assignment;
  // The job is queued, but no sweep that claims it lets it start: all are paused or being
  // cancelled.
  bool paused = false;
};

// One fact about an attempt, as its worker sent it. Its attempt, token, worker and sequence number
// are checked in the transaction that stores it; the sequence number must be the last stored one
// plus 1.
struct AttemptEvent {
  std::shared_ptr<const v1::Event> event;  // usually inside the batch in which it came; never null
  // The id of the worker whose session sent it; null: any worker.
  std::shared_ptr<const std::string> worker;
  std::int64_t now = 0;
  double jitter = 0.75;  // factor for a back-off, in [0.5, 1)
};
// Ends an attempt by the coordinator's decision: its lease ran out, or its worker no longer holds
// it.
struct EndAttempt {
  std::int64_t attempt_id = 0;
  // kLose, or kPreempt if the worker has ended without having started it.
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
  std::int64_t now = 0;           // when it changed, Unix milliseconds; a back-off counts from it
  double gpu_seconds = 0;         // of the attempt; its principal, if it has one, was charged them
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
  // The event had a false token, or came from another worker: it says nothing about the attempt.
  bool foreign = false;
  std::uint64_t acknowledged = 0;
  bool started = false;  // the event was the trainer's hello
  // The attempt has come further: its hello, an epoch, an analysis that was missing, its end. A
  // worker can send a file, or what is stored already, again and again.
  bool advanced = false;
  double epoch_seconds = 0;  // set if the event was an epoch
  // The hello said that the job is faster alone than as one batch with others.
  bool better_alone = false;
  // Set if the event ended the attempt. A pointer, because most events end none.
  std::shared_ptr<const JobChange> change;
};

// Appends to an attempt's log. Lossy: only the last kKeptLogBytes of an attempt are kept.
inline constexpr std::int64_t kKeptLogBytes = std::int64_t{256} * 1024;
struct AppendLog {
  std::int64_t attempt_id = 0;
  std::uint64_t token = 0;
  std::uint64_t offset = 0;
  std::string data;
  std::shared_ptr<const std::string> worker;  // as in AttemptEvent
};

// Files -----------------------------------------------------------------------------------------

// Records that a file of an attempt is complete on disk. The file stays until an event names it or
// the attempt ends.
struct RecordUpload {
  std::int64_t attempt_id = 0;
  std::uint64_t token = 0;
  std::string sha256;
  int most = limits::kFilesOfAttempt;  // files of the attempt that no event has named
  bool only_ask = false;               // whether it would be recorded; nothing is changed
};
struct UploadRecorded {
  bool accepted = false;  // false: no open attempt has this id and token, or `full`
  bool full = false;      // the attempt has `most` other files already
};
// Records that a file which documents may name is complete on disk. It is kept for kFileTime, and
// longer while a configuration names it. Has no result.
struct RecordFile {
  std::string sha256;
  std::uint64_t bytes = 0;
  std::int64_t now = 0;
};
inline constexpr std::int64_t kFileTime = std::int64_t{24} * 3600 * 1000;  // a day, in ms
// Begins the time of recorded files anew, because a document that names them is about to be stored.
struct RenewFiles {
  std::vector<std::string> sha256s;
  std::int64_t now = 0;
};
struct FilesRenewed {
  std::vector<std::string> unknown;  // those that are not recorded
};
// Finds out which of these hashes no row refers to, and forgets recorded files that are among them.
struct FindUnused {
  std::vector<std::string> sha256s;
  std::int64_t now = 0;
};
// Deletes checkpoints, oldest first, until the deleted ones add up to `bytes`.
struct DropCheckpoints {
  std::uint64_t bytes = 0;
};
// FindUnused gives the hashes that no row refers to, DropCheckpoints those of deleted checkpoints.
struct Unused {
  std::vector<std::string> sha256s;
};

// Imports ---------------------------------------------------------------------------------------

// A complete job that was trained for another database. If its key is trained, queued or running
// here, nothing is changed.
struct ImportJob {
  NewCell cell;  // of `job`; the ordinal is not used
  v1::ImportedJob job;
  std::vector<v1::Epoch> epochs;  // the accepted curve
  std::vector<v1::ImportedAnalysis> analyses;
  std::vector<v1::ImportedFile> files;  // present already and held
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
  TraceContext trace;                                       // as the other database has it
  std::vector<std::pair<std::uint64_t, std::string>> jobs;  // ordinals and keys
  bool finish = false;  // every cell is trained here: set with the last slice
};
struct SweepImported {
  std::string refused;        // the token is of another sweep here; nothing is changed
  std::int64_t sweep_id = 0;  // 0: none of its jobs is here
  bool changed = false;
  bool finished = false;  // the sweep is here and not cancelled
  bool settled = false;   // the sweep was here already and not cancelled; it is left as it is
  std::int64_t jobs = 0;  // cells of this slice that are trained here
  std::int64_t missing = 0;
};

struct Nothing {};  // Result of writes that have none.

using WriteVariant =
    std::variant<SubmitSweep, ExpandSlice, CancelSweep, DropSlice, CancelJob, ControlSweep,
                 LabelSweep, DeleteSweep, DeleteSlice, CountDeletion, RetrySlice, RetryJob,
                 ExtendSweep, Analyze, WorkerHello, WorkerSeen, DrainWorker, CreateAttempt,
                 AttemptEvent, EndAttempt, AppendLog, RecordUpload, RecordFile, RenewFiles,
                 FindUnused, DropCheckpoints, ImportJob, ImportSweep, AddPrincipal, ChangePrincipal,
                 RecordAct, ReopenSweep, RegisterSheet, BeginRound, EndRound, PutAside, PutQueue,
                 PauseQueue, RemoveQueue>;
using WriteResultVariant =
    std::variant<Nothing, SweepStored, SliceStored, Cancelled, SweepControlled, SweepLabeled,
                 SweepDeleted, DeletionCounted, Retried, SweepExtended, Analyzed, WorkerStored,
                 WorkerDrained, AttemptCreated, EventStored, UploadRecorded, FilesRenewed, Unused,
                 JobImported, SweepImported, PrincipalStored, SheetRegistered, RoundBegun,
                 RoundEnded, ClaimsPutAside, QueueStored>;

// The copies and moves of both are compiled once, in writes.cc: each would otherwise be a table of
// functions in every file that passes a write on.
struct Write : WriteVariant {
  template <typename T, typename = std::enable_if_t<!std::is_base_of_v<WriteVariant, T>>>
  Write(T write)  // NOLINT(google-explicit-constructor): as for a variant
      : WriteVariant(std::move(write)) {}
  Write(const Write&);
  Write(Write&&) noexcept;
  Write& operator=(const Write&);
  Write& operator=(Write&&) noexcept;
  ~Write();
};
struct WriteResult : WriteResultVariant {
  WriteResult();  // Nothing
  template <typename T, typename = std::enable_if_t<!std::is_base_of_v<WriteResultVariant, T>>>
  WriteResult(T result)  // NOLINT(google-explicit-constructor): as for a variant
      : WriteResultVariant(std::move(result)) {}
  WriteResult(const WriteResult&);
  WriteResult(WriteResult&&) noexcept;
  WriteResult& operator=(const WriteResult&);
  WriteResult& operator=(WriteResult&&) noexcept;
  ~WriteResult();
};

// The jobs that the write queued and the attempts that it superseded, for the scheduler; null:
// none.
const SliceStored* JobsOf(const WriteResult& result);

// Whether the write may change as many jobs as fit into a slice. It takes 20 to 30 ms then.
bool IsLong(const Write& write);

// Approximate memory that a write occupies; bounded queues count it.
std::size_t ByteSize(const Write& write);
std::size_t ByteSize(const std::vector<Write>& writes);

}  // namespace pelab::store
