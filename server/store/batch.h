// What the writes of one transaction share. Internal to the store; everything here may throw
// SQLite::Exception, on which the transaction is rolled back.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "server/store/database.h"
#include "server/store/epoch_staging.h"
#include "server/store/store.h"
#include "server/store/writes.h"

namespace pelab::store {

// An attempt and its job's summary, read once a batch and written once a batch: many epochs of one
// attempt cost one update of its rows.
struct AttemptRow {
  std::int64_t attempt_id = 0;
  std::uint64_t token = 0;
  std::uint64_t last_sequence = 0;
  std::int64_t job_id = 0;
  std::string device;
  std::string analyses_json;
  std::optional<int> start_epoch;
  bool open = false;
  bool trained = false;  // it only adds analyses
  // Of the job.
  std::optional<Execution> execution;
  int epochs = 0;
  int epochs_done = 0;
  int epochs_counted = 0;     // of those, in the counts of its sweeps
  std::optional<Epoch> last;  // of this batch
  std::optional<std::int64_t> best_correct;
  std::optional<std::int64_t> best_total;
  std::optional<double> wall_seconds;  // of this batch

  bool sequence_dirty = false;
};

// What changes in the counts of a sweep.
struct CountDelta {
  std::array<std::int64_t, 6> jobs{};  // by state::JobState
  std::int64_t epochs = 0;
  std::int64_t epochs_done = 0;
};

struct Batch {
  Batch(Database& database, EpochStaging& epochs, const StoreOptions& store_options,
        const OpenJobs& open)
      : db(database), staging(epochs), options(store_options), open_before(open) {}

  // Null where there is no such attempt.
  AttemptRow* Load(std::int64_t attempt_id);
  void Flush(AttemptRow& row);
  void FlushAll();  // and forgets the rows: other writes change them with SQL

  // Every sweep that has the job counts it, whether it claims it or not.
  void CountMove(std::int64_t job_id, state::JobState from, state::JobState to);
  void CountEpochs(std::int64_t job_id, std::int64_t more);
  void StoreCounts();  // `counts` and `open_delta`; once, at the end

  Database& db;
  EpochStaging& staging;
  const StoreOptions& options;
  std::map<std::int64_t, AttemptRow> attempts;
  const OpenJobs& open_before;  // by sweep, as of the last batch
  OpenJobs open_delta;
  std::map<std::int64_t, CountDelta> counts;  // by sweep
  std::set<std::int64_t> uncounted;           // sweeps that start from 0 before open_delta counts
  std::vector<std::string> dropped_files;     // that lost a reference
};

// What moves a job.
struct Happening {
  state::Event event = state::Event::kLose;
  state::ErrorKind error_kind = state::ErrorKind::kNone;
  std::string error;
  std::int64_t now = 0;
  double jitter = 0.75;
  std::int64_t attempt_id = 0;  // the job's open attempt, where the caller knows it
};
// Applies core/state's transition to the job and, where it ends the attempt, to its open attempt.
// nullopt: it cannot happen in this state, and nothing changed.
std::optional<JobChange> Move(Batch& batch, std::int64_t job_id, const Happening& happening);

std::optional<std::int64_t> OpenAttemptOf(Database& db, std::int64_t job_id);

// Replaces the job's checkpoint, unless the job has ended meanwhile or the file is not there.
void StoreCheckpoint(Batch& batch, const AttemptRow& attempt, const Checkpoint& checkpoint,
                     std::int64_t now);
// Forgets the job's checkpoint where it is beyond `epoch`.
void DropCheckpointBeyond(Batch& batch, std::int64_t job_id, int epoch);
inline void DropCheckpoint(Batch& batch, std::int64_t job_id) {
  DropCheckpointBeyond(batch, job_id, -1);
}

// A queued job as the scheduler keeps it.
ReadyJob LoadReady(Database& db, std::int64_t job_id);
// The live claims besides the one that `job` names.
std::vector<Claim> OtherClaims(Database& db, const ReadyJob& job);
// The columns of LoadReady, from j (jobs) and c (sweep_jobs); the analyses and other claims are left
// to the caller.
ReadyJob ReadReady(const Query& query);
extern const char kReadyColumns[];
inline constexpr int kReadyAttempts = 12;  // the last of them: how often the job was tried

// From a job's execution_json; nullopt where there is none, or none that can be read.
std::optional<Execution> ReadExecution(const Query& query, int column);
// The assignment of an attempt, from its row.
Assignment LoadAssignment(Database& db, std::int64_t attempt_id);

WriteResult Do(Batch& batch, const SubmitSweep& write);
WriteResult Do(Batch& batch, const ExpandSlice& write);
WriteResult Do(Batch& batch, const CancelSweep& write);
WriteResult Do(Batch& batch, const DropSlice& write);
WriteResult Do(Batch& batch, const CancelJob& write);
WriteResult Do(Batch& batch, const SteerSweep& write);
WriteResult Do(Batch& batch, const RetrySlice& write);
WriteResult Do(Batch& batch, const RetryJob& write);
WriteResult Do(Batch& batch, const ExtendSweep& write);
WriteResult Do(Batch& batch, const Analyse& write);
WriteResult Do(Batch& batch, const WorkerHello& write);
WriteResult Do(Batch& batch, const WorkerSeen& write);
WriteResult Do(Batch& batch, const DrainWorker& write);
WriteResult Do(Batch& batch, const CreateAttempt& write);
WriteResult Do(Batch& batch, const AttemptEvent& write);
WriteResult Do(Batch& batch, const EndAttempt& write);
WriteResult Do(Batch& batch, const AppendLog& write);
WriteResult Do(Batch& batch, const RecordUpload& write);
WriteResult Do(Batch& batch, const FindUnused& write);
WriteResult Do(Batch& batch, const DropCheckpoints& write);
WriteResult Do(Batch& batch, const ImportJob& write);
WriteResult Do(Batch& batch, const ImportSweep& write);

}  // namespace pelab::store
