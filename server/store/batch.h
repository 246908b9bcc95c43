// State that the writes of one transaction share. Internal to the store. Every function here may
// throw SQLite::Exception; the transaction is then rolled back.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/event/job_facts.h"
#include "server/store/attempt_rows.h"
#include "server/store/database.h"
#include "server/store/epoch_staging.h"
#include "server/store/store.h"
#include "server/store/writes.h"

namespace pelab::store {

// Whether `row` (null: there is no such attempt) is an attempt with this token that this worker
// runs; a null `worker` stands for any.
bool IsOf(const AttemptRow* row, std::uint64_t token,
          const std::shared_ptr<const std::string>& worker);

// Changes to the counts of one sweep.
struct CountDelta {
  std::array<std::int64_t, 6> jobs{};  // by state::JobState
  std::int64_t epochs = 0;
  std::int64_t epochs_done = 0;
};

struct Batch {
  Batch(Database& database, EpochStaging& epochs, const StoreOptions& store_options,
        const OpenJobs& open, AttemptRows& rows, FactsCache& known)
      : db(database),
        staging(epochs),
        options(store_options),
        attempts(rows),
        open_before(open),
        facts(known) {}

  // Returns nullptr if there is no such attempt.
  AttemptRow* Load(std::int64_t attempt_id);
  void Flush(AttemptRow& row);
  void FlushAll();
  // Flushes all rows and forgets them, before a write that changes them with SQL.
  void ForgetAll();

  // Counts a job's transition for every sweep that has the job. Sweeps that have withdrawn their
  // claim count it as WithoutClaim says. `trained`: whether the job was trained before the
  // transition.
  void CountMove(std::int64_t job_id, state::JobState from, state::JobState to, bool trained);
  void CountEpochs(AttemptRow& row, std::int64_t more);  // for the sweeps that claim the row's job
  // The facts of the spec of the attempt's job; nullptr if it is no canonical spec. Valid until the
  // next call.
  const event::JobFacts* FactsOf(const AttemptRow& row);
  // Empty if a row may name this file. Otherwise: it is not stored, or its size is another.
  std::string WhatIsWrongWithFile(const std::string& sha256, std::uint64_t bytes) const;
  void StoreCounts();  // stores `counts` and `open_delta`; call once, at the end

  Database& db;
  EpochStaging& staging;
  const StoreOptions& options;
  AttemptRows& attempts;        // those of earlier batches too
  const OpenJobs& open_before;  // by sweep, as of the end of the previous batch
  FactsCache& facts;            // of configurations that were asked for, also by earlier batches
  OpenJobs open_delta;
  std::map<std::int64_t, CountDelta> counts;  // by sweep
  // Sweeps whose open count starts from 0 before open_delta is added.
  std::set<std::int64_t> uncounted;
  std::set<std::int64_t> gone;             // sweeps whose rows were deleted
  bool refused = false;                    // the write before this one was refused
  std::vector<std::string> dropped_files;  // files that lost a reference
  std::vector<std::int64_t> ended_sweeps;  // finished or cancelled
};

// An event that moves a job to another state.
struct JobEvent {
  state::Event event = state::Event::kLose;
  state::ErrorKind error_kind = state::ErrorKind::kNone;
  std::string error;
  std::int64_t now = 0;
  double jitter = 0.75;
  std::int64_t attempt_id = 0;  // the job's open attempt, if the caller knows it
  bool never_started = false;   // for kPreempt: the worker had started no trainer for the attempt
  std::optional<double> energy_joules = std::nullopt;  // of the attempt that ends, if measured
};
// Applies core/state's transition to the job and, if it has an outcome for the attempt, ends the
// job's open attempt. nullopt: the event cannot happen in this state, and nothing changed.
std::optional<JobChange> Move(Batch& batch, std::int64_t job_id, const JobEvent& job_event);
// The same, as EventStored keeps it; null for nullopt.
std::shared_ptr<const JobChange> SharedMove(Batch& batch, std::int64_t job_id,
                                            const JobEvent& job_event);

std::optional<std::int64_t> OpenAttemptOf(Database& db, std::int64_t job_id);

// Replaces the job's checkpoint, unless the job has ended meanwhile, or the file is missing or has
// another size.
void StoreCheckpoint(Batch& batch, const AttemptRow& attempt, const v1::Checkpoint& checkpoint,
                     std::int64_t now);
// Forgets the job's checkpoint if its epoch is beyond `epoch`.
void DropCheckpointBeyond(Batch& batch, std::int64_t job_id, int epoch);
inline void DropCheckpoint(Batch& batch, std::int64_t job_id) {
  DropCheckpointBeyond(batch, job_id, -1);
}

// The queued job in the form that the scheduler keeps.
ReadyJob LoadReady(Database& db, std::int64_t job_id);
// How many jobs of the principal's sweeps wait. A job of two sweeps counts twice.
std::int64_t QueuedOf(Batch& batch, const std::string& owner);
// Charges an attempt on a GPU, which ends now, to its principal, if it has one. Attempts that one
// trainer ran together pay for their time in equal parts. Returns the seconds.
double ChargeAttempt(Batch& batch, std::int64_t attempt_id, std::int64_t now);
// The live claims other than the one that `job` names.
std::vector<Claim> OtherClaims(Database& db, const ReadyJob& job);
// Reads the columns kReadyColumns, which come from j (jobs) and c (sweep_jobs). The caller adds the
// analyses and the other claims.
ReadyJob ReadReady(const Query& query);
extern const char kReadyColumns[];
// Index of the last of these columns: how many attempts the job has had.
inline constexpr int kReadyAttempts = 12;

Execution ToExecution(const v1::Execution& execution);
// Reads a job's execution_json; nullopt if it is NULL, malformed or not possible.
std::optional<Execution> ReadExecution(const Query& query, int column);
// The hashes of the files that the spec's encoding and data come from, if they do.
std::vector<std::string> FilesOfSpec(const std::string& spec_json);
// The files that the assignment's spec names.
std::vector<NeededFile> NeededFiles(Database& db, const Assignment& assignment);
// The assignment of an attempt, read from its row.
Assignment LoadAssignment(Database& db, std::int64_t attempt_id);

WriteResult Do(Batch& batch, const SubmitSweep& write);
WriteResult Do(Batch& batch, const ExpandSlice& write);
WriteResult Do(Batch& batch, const CancelSweep& write);
WriteResult Do(Batch& batch, const DropSlice& write);
WriteResult Do(Batch& batch, const CancelJob& write);
WriteResult Do(Batch& batch, const ControlSweep& write);
WriteResult Do(Batch& batch, const LabelSweep& write);
WriteResult Do(Batch& batch, const DeleteSweep& write);
WriteResult Do(Batch& batch, const DeleteSlice& write);
WriteResult Do(Batch& batch, const CountDeletion& write);
WriteResult Do(Batch& batch, const RetrySlice& write);
WriteResult Do(Batch& batch, const RetryJob& write);
WriteResult Do(Batch& batch, const ExtendSweep& write);
WriteResult Do(Batch& batch, const Analyze& write);
WriteResult Do(Batch& batch, const WorkerHello& write);
WriteResult Do(Batch& batch, const WorkerSeen& write);
WriteResult Do(Batch& batch, const DrainWorker& write);
WriteResult Do(Batch& batch, const CreateAttempt& write);
WriteResult Do(Batch& batch, const AttemptEvent& write);
WriteResult Do(Batch& batch, const EndAttempt& write);
WriteResult Do(Batch& batch, const AppendLog& write);
WriteResult Do(Batch& batch, const RecordUpload& write);
WriteResult Do(Batch& batch, const RecordFile& write);
WriteResult Do(Batch& batch, const RenewFiles& write);
WriteResult Do(Batch& batch, const FindUnused& write);
WriteResult Do(Batch& batch, const DropCheckpoints& write);
WriteResult Do(Batch& batch, const ImportJob& write);
WriteResult Do(Batch& batch, const ImportSweep& write);
WriteResult Do(Batch& batch, const AddPrincipal& write);
WriteResult Do(Batch& batch, const ChangePrincipal& write);
WriteResult Do(Batch& batch, const RecordAct& write);
WriteResult Do(Batch& batch, const ReopenSweep& write);
WriteResult Do(Batch& batch, const RegisterSheet& write);
WriteResult Do(Batch& batch, const BeginRound& write);
WriteResult Do(Batch& batch, const EndRound& write);
WriteResult Do(Batch& batch, const PutAside& write);
WriteResult Do(Batch& batch, const PutQueue& write);
WriteResult Do(Batch& batch, const PauseQueue& write);
WriteResult Do(Batch& batch, const RemoveQueue& write);

}  // namespace pelab::store
