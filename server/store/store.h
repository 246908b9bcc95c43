// What the coordinator keeps, and the only code that writes it: sweeps, jobs, attempts, curves,
// analyses, artifacts' names, logs, workers. Every change is a value (writes.h), applied in batches
// of one transaction. One thread at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/store/checkpointer.h"
#include "server/store/epoch_staging.h"
#include "server/store/writes.h"

namespace pelab::store {

class Database;

struct StoreOptions {
  state::Budgets budgets;
  // Whether the file of an artifact is there. Called on the writing thread, briefly; unset: every
  // artifact that the database knows is there.
  std::function<bool(const std::string& sha256)> has_artifact;
  // The SQLite VFS to open the file with; empty: the system's.
  std::string vfs;
  EpochStagingOptions staging;
  // Files that lost a reference in what was just committed: perhaps nobody needs them any more.
  // Called on the writing thread, briefly.
  std::function<void(std::vector<std::string> sha256s)> dropped;
};

// A sweep whose expansion was under way.
struct ExpandingSweep {
  std::int64_t sweep_id = 0;
  std::string document;
  std::string overrides_json;
  std::vector<std::string> extensions;  // seeds that were added, in order: "5..9"
  std::uint64_t expanded_cells = 0;
};

// A sweep that is live, or cancelled with jobs left to drop, or deleted with jobs left to delete.
struct RecoveredSweep {
  SweepStanding standing;
  bool dropping = false;
  bool deleting = false;
};

// Live sweeps' claimed jobs that have not ended, by sweep: kept in memory so that the end of a
// sweep is noticed without counting its jobs.
using OpenJobs = std::map<std::int64_t, std::int64_t>;

// The answer to one write, or why that write alone could not be stored.
using ApplyResult = absl::StatusOr<WriteResult>;

class Store {
 public:
  // Opens, creates or migrates the file; errors are those of Database::Open.
  static absl::StatusOr<std::unique_ptr<Store>> Open(const std::string& path,
                                                     const StoreOptions& options = {});
  ~Store();

  // All of `writes`, in order, in one transaction that is durable when this returns. An error (the
  // disk is full, the file is damaged) means that nothing of the batch is stored. A write that
  // breaks a constraint of the schema is left out alone and has its own error.
  absl::StatusOr<std::vector<ApplyResult>> Apply(std::span<const Write> writes);

  // What the scheduler has to know at start. Marks every worker offline: none is connected yet.
  absl::Status Recover(const std::function<void(RecoveredSweep)>& sweep,
                       const std::function<void(ReadyJob)>& ready,
                       const std::function<void(OpenAttempt)>& open,
                       const std::function<void(ExpandingSweep)>& expanding);

  // While nothing else is to be written: moves some of the epochs that wait into their curves.
  // Returns whether more of them wait. Best effort.
  bool MoveEpochs();

  // Moves the WAL into the file; with `truncate` also empties it. Best effort.
  void Checkpoint(bool truncate);
  // Begins to do that beside what is written from now on; nothing while it is under way. Once it has
  // ended, which TakeCheckpointEnded says once, little is left for Checkpoint to do.
  void BeginCheckpoint();
  bool TakeCheckpointEnded();

  // The connection, for tests that look at what is stored.
  Database& database() { return *database_; }

 private:
  Store(const std::string& path, std::unique_ptr<Database> database, const StoreOptions& options);
  absl::Status LoadOpenJobs();
  std::vector<WriteResult> ApplyOnce(std::span<const Write> writes);
  absl::StatusOr<std::vector<ApplyResult>> ApplyOneByOne(std::span<const Write> writes);

  const std::string path_;
  std::unique_ptr<Database> database_;
  StoreOptions options_;
  OpenJobs open_jobs_;
  EpochStaging staging_;
  std::optional<Checkpointer> checkpointer_;  // from the first BeginCheckpoint on
};

}  // namespace pelab::store
