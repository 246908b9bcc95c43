// The coordinator's stored state, and the only code that writes it: sweeps, jobs, attempts, curves,
// analyses, names of artifacts, logs, workers, claim sheets, principals, the record and queues.
// Every change is a value (writes.h). Changes are applied in batches, one transaction for each
// batch. One thread at a time may use a Store.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/event/job_facts.h"
#include "server/store/checkpointer.h"
#include "server/store/epoch_staging.h"
#include "server/store/writes.h"

namespace pelab::store {

class AttemptRows;
class Database;

struct StoreOptions {
  state::Budgets budgets;
  // The size of the stored file with this hash; nullopt if there is none. Called on the writer
  // thread; must be quick. If unset, every file counts as stored, with the size that its event
  // gives.
  std::function<std::optional<std::uint64_t>(const std::string& sha256)> artifact_bytes;
  // Name of the SQLite VFS to open the file with; empty: the default one.
  std::string vfs;
  EpochStagingOptions staging;
  // Called after a commit with the files that lost a reference in it and may be unused now. Called
  // on the writer thread; must be quick.
  std::function<void(std::vector<std::string> sha256s)> dropped;
  // Called after a commit with the sweeps that have finished or were cancelled in it. Called on the
  // writer thread; must be quick.
  std::function<void(std::vector<std::int64_t> sweep_ids)> ended;
};

// A sweep whose expansion was not complete.
struct ExpandingSweep {
  std::int64_t sweep_id = 0;
  std::string document;
  std::string overrides_json;
  std::vector<std::string> extensions;  // added seeds, in order: "5..9"
  std::uint64_t expanded_cells = 0;
};

// A sweep that is live, or cancelled with claims left to withdraw, or deleted with jobs left to
// delete.
struct RecoveredSweep {
  SweepSettings settings;
  bool dropping = false;
  bool deleting = false;
};

// How many claimed jobs of each live sweep have not ended, by sweep. Kept in memory, so that the
// end of a sweep is noticed without counting its jobs.
using OpenJobs = std::map<std::int64_t, std::int64_t>;

// The facts of the specs of configurations, by configuration_id: reading a spec takes longer than
// storing an epoch. nullopt: not a canonical spec. Bounded (Batch::FactsOf).
using FactsCache = std::unordered_map<std::int64_t, std::optional<event::JobFacts>>;

// The result of one write, or the reason why that write alone could not be stored: UNAVAILABLE if
// the file failed meanwhile, so that the write may succeed later.
using ApplyResult = absl::StatusOr<WriteResult>;

class Store {
 public:
  // Opens, creates or migrates the file. The errors are those of Database::Open.
  static absl::StatusOr<std::unique_ptr<Store>> Open(const std::string& path,
                                                     const StoreOptions& options = {});
  ~Store();

  // Applies all of `writes`, in order, in one transaction that is durable when this returns. An
  // error (the disk is full, the file is damaged) means that nothing of the batch is stored.
  // FAILED_PRECONDITION while the file is not at its path: it was moved, removed or replaced. If
  // SQLite refuses one of the writes (it breaks a constraint, a trigger fails), the writes are
  // applied again, each in a transaction of its own: the ones that fail are left out and have their
  // own errors.
  absl::StatusOr<std::vector<ApplyResult>> Apply(std::span<const Write> writes);

  // Every principal, ordered by name.
  absl::StatusOr<std::vector<Principal>> Principals();
  // Every queue of pelab-scale, ordered by name.
  absl::StatusOr<std::vector<StoredQueue>> Queues();

  // Reports what the scheduler has to know at start. Marks every worker offline, because none is
  // connected yet.
  absl::Status Recover(const std::function<void(RecoveredSweep)>& sweep,
                       const std::function<void(ReadyJob)>& ready,
                       const std::function<void(OpenAttempt)>& open,
                       const std::function<void(ExpandingSweep)>& expanding);

  // Moves some of the staged epochs into their curves. Call it while nothing else is to be written.
  // Returns whether more are left. Best effort.
  bool MoveEpochs();

  // Runs a WAL checkpoint; with `truncate` it also empties the WAL. Best effort.
  void Checkpoint(bool truncate);
  // Starts a WAL checkpoint on another thread, beside the following writes, and returns true. Does
  // nothing while one is running; AwaitCheckpoint waits for that one. TakeCheckpointEnded returns
  // true once when it has ended; after that, little is left for Checkpoint to do.
  bool BeginCheckpoint();
  void AwaitCheckpoint();
  std::int64_t WalBytes() const { return database_->WalBytes(); }
  bool TakeCheckpointEnded();

  // The connection, for tests that inspect what is stored.
  Database& database() { return *database_; }

 private:
  Store(const std::string& path, std::unique_ptr<Database> database, const StoreOptions& options);
  absl::Status LoadOpenJobs();
  void RolledBack();
  std::vector<WriteResult> ApplyOnce(std::span<const Write> writes);
  absl::StatusOr<std::vector<ApplyResult>> ApplyOneByOne(std::span<const Write> writes);

  const std::string path_;
  std::unique_ptr<Database> database_;
  StoreOptions options_;
  OpenJobs open_jobs_;
  std::unique_ptr<AttemptRows> attempts_;
  FactsCache facts_;
  EpochStaging staging_;
  std::optional<Checkpointer> checkpointer_;  // exists from the first BeginCheckpoint on
};

}  // namespace pelab::store
