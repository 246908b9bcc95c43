#include "server/store/store.h"

#include <sqlite3.h>

#include <cstdint>
#include <type_traits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/status.h"
#include "server/store/batch.h"
#include "server/store/database.h"

namespace pelab::store {
namespace {

// Marks sweeps as finished if their last open job has ended in this batch.
void FinishSweeps(Batch& batch, const OpenJobs& before) {
  for (const auto& [sweep_id, delta] : batch.open_delta) {
    const auto found = before.find(sweep_id);
    const bool counted = found != before.end() && batch.uncounted.count(sweep_id) == 0;
    const std::int64_t open = delta + (counted ? found->second : 0);
    if (open == 0) {
      const int ended = batch.db.Execute(
          "UPDATE sweeps SET state = 'finished', reopened = 0, paused = 0 "
          "WHERE sweep_id = ? AND state = 'active'",
          sweep_id);
      if (ended != 0) batch.ended_sweeps.push_back(sweep_id);
    }
  }
}

// Whether a write changes attempts through AttemptRows only, or leaves the attempts of these rows
// alone. CreateAttempt leaves them alone: its job is queued, so its rows are of attempts that have
// ended. A write that ends an attempt stores the attempt's row first.
template <typename T>
constexpr bool kKeepsRows = std::is_same_v<T, AttemptEvent> || std::is_same_v<T, AppendLog> ||
                            std::is_same_v<T, CreateAttempt> || std::is_same_v<T, WorkerSeen>;

WriteResult DoOne(Batch& batch, const Write& write) {
  return std::visit(
      [&batch](const auto& value) -> WriteResult {
        if constexpr (!kKeepsRows<std::decay_t<decltype(value)>>) batch.ForgetAll();
        return Do(batch, value);
      },
      write);
}

// Whether the error is of the file, its disk or its locks, so that no other write would succeed
// either. Every other error is of the write itself: what the schema, a trigger or a function of SQL
// refuses.
bool IsOfTheFile(const SQLite::Exception& error) {
  switch (error.getErrorCode() & 0xff) {  // without the extended part
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
    case SQLITE_NOMEM:
    case SQLITE_READONLY:
    case SQLITE_IOERR:
    case SQLITE_CORRUPT:
    case SQLITE_FULL:
    case SQLITE_CANTOPEN:
    case SQLITE_PROTOCOL:
    case SQLITE_NOTADB:
      return true;
    default:
      return false;
  }
}

// Whether the store refused a write, so that it changed nothing.
struct IsRefused {
  bool operator()(const SweepStored& r) const { return r.refusal != SweepStored::kNone; }
  bool operator()(const PrincipalStored& r) const { return r.refusal != PrincipalStored::kNone; }
  bool operator()(const QueueStored& r) const { return r.refusal != QueueStored::kNone; }
  bool operator()(const Retried& r) const { return !r.refused.empty(); }
  bool operator()(const WorkerDrained& r) const { return !r.refused.empty(); }
  bool operator()(const JobImported& r) const { return !r.refused.empty(); }
  bool operator()(const SweepImported& r) const { return !r.refused.empty(); }
  bool operator()(const SweepExtended& r) const { return !r.applied; }
  bool operator()(const SweepLabeled& r) const { return !r.found || r.has_name != 0; }
  bool operator()(const SweepDeleted& r) const { return !r.found || r.live; }
  bool operator()(const SweepControlled& r) const { return !r.found; }
  bool operator()(const Cancelled& r) const { return !r.found; }
  template <typename T>
  bool operator()(const T&) const {
    return false;
  }
};

bool IsRecordOfBefore(const Write& write) {
  const auto* act = std::get_if<RecordAct>(&write);
  return act != nullptr && act->outcome.empty();
}

}  // namespace

Store::Store(const std::string& path, std::unique_ptr<Database> database,
             const StoreOptions& options)
    : path_(path),
      database_(std::move(database)),
      options_(options),
      attempts_(std::make_unique<AttemptRows>()),
      staging_(*database_, options.staging) {}
Store::~Store() = default;

absl::StatusOr<std::unique_ptr<Store>> Store::Open(const std::string& path,
                                                   const StoreOptions& options) {
  PELAB_ASSIGN_OR_RETURN(std::unique_ptr<Database> database, Database::Open(path, options.vfs));
  std::unique_ptr<Store> store(new Store(path, std::move(database), options));
  PELAB_RETURN_IF_ERROR(store->LoadOpenJobs());
  return store;
}

absl::Status Store::LoadOpenJobs() {
  try {
    Query rows =
        database_->Run("SELECT sweep_id, open_claims FROM sweep_counts WHERE open_claims <> 0");
    while (rows.Step()) open_jobs_[rows.Int(0)] = rows.Int(1);
    return absl::OkStatus();
  } catch (const SQLite::Exception& error) {
    return ToStatus(error, "cannot read the database");
  }
}

std::vector<WriteResult> Store::ApplyOnce(std::span<const Write> writes) {
  Batch batch(*database_, staging_, options_, open_jobs_, *attempts_, facts_);
  SQLite::Transaction transaction(database_->connection(), SQLite::TransactionBehavior::IMMEDIATE);
  staging_.Begin();
  std::vector<WriteResult> results;
  results.reserve(writes.size());
  for (const Write& write : writes) {
    results.push_back(DoOne(batch, write));
    batch.refused = std::visit(IsRefused{}, results.back());
  }
  batch.FlushAll();
  attempts_->Bound();
  FinishSweeps(batch, open_jobs_);
  batch.StoreCounts();
  staging_.End();
  transaction.commit();
  for (const std::int64_t sweep_id : batch.uncounted) open_jobs_.erase(sweep_id);
  for (const auto& [sweep_id, delta] : batch.open_delta) {
    if ((open_jobs_[sweep_id] += delta) == 0) open_jobs_.erase(sweep_id);
  }
  if (!batch.dropped_files.empty() && options_.dropped) {
    options_.dropped(std::move(batch.dropped_files));
  }
  if (!batch.ended_sweeps.empty() && options_.ended) {
    options_.ended(std::move(batch.ended_sweeps));
  }
  return results;
}

// The rows in memory may be those of the transaction that is gone.
void Store::RolledBack() {
  staging_.RolledBack();
  attempts_->ForgetAll();
}

absl::StatusOr<std::vector<ApplyResult>> Store::ApplyOneByOne(std::span<const Write> writes) {
  std::vector<ApplyResult> results;
  results.reserve(writes.size());
  while (results.size() < writes.size()) {
    // A write and its record are stored together, or neither is.
    const std::size_t begin = results.size();
    std::size_t count = 1;
    while (begin + count < writes.size() && IsRecordOfBefore(writes[begin + count])) ++count;
    try {
      for (WriteResult& result : ApplyOnce(writes.subspan(begin, count))) {
        results.emplace_back(std::move(result));
      }
    } catch (const SQLite::Exception& error) {
      RolledBack();
      if (IsOfTheFile(error)) {
        const absl::Status status = ToStatus(error, "cannot write to the database");
        if (results.empty()) return status;
        // The first ones may be stored. The others are not refused; they may be sent again.
        results.resize(writes.size(), absl::UnavailableError(status.message()));
        return results;
      }
      results.resize(begin + count, ToStatus(error, "cannot store this"));
    }
  }
  return results;
}

absl::StatusOr<std::vector<ApplyResult>> Store::Apply(std::span<const Write> writes) {
  if (database_->Moved()) {
    return absl::FailedPreconditionError(
        absl::StrCat(path_,
                     " was removed or replaced while it is served: put it back, or start "
                     "the coordinator again"));
  }
  try {
    std::vector<WriteResult> results = ApplyOnce(writes);
    return std::vector<ApplyResult>(std::make_move_iterator(results.begin()),
                                    std::make_move_iterator(results.end()));
  } catch (const SQLite::Exception& error) {
    RolledBack();
    if (IsOfTheFile(error)) return ToStatus(error, "cannot write to the database");
    return ApplyOneByOne(writes);  // the others must not be affected
  }
}

bool Store::MoveEpochs() {
  try {
    SQLite::Transaction transaction(database_->connection(),
                                    SQLite::TransactionBehavior::IMMEDIATE);
    staging_.Begin();
    staging_.MoveOn();
    transaction.commit();
    return !staging_.empty();
  } catch (const SQLite::Exception&) {
    staging_.RolledBack();  // the next write reports the error
    return false;
  }
}

void Store::Checkpoint(bool truncate) { database_->Checkpoint(truncate); }

bool Store::BeginCheckpoint() {
  if (!checkpointer_) checkpointer_.emplace(path_, options_.vfs);
  return checkpointer_->Begin();
}

void Store::AwaitCheckpoint() {
  if (checkpointer_) checkpointer_->AwaitEnd();
}

bool Store::TakeCheckpointEnded() { return checkpointer_ && checkpointer_->TakeEnded(); }

}  // namespace pelab::store
