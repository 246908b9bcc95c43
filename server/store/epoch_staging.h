// Where epochs wait between their arrival and their attempt's curve. They are appended to one table, dozens to a page, and
// moved into `curves` an attempt at a time once there are many: an epoch written straight into its curve would cost a page of
// the log of its own (migrations/0007_staged_epochs.sql). The views show both, so nobody sees where an epoch is.
//
// Works inside the transactions of Store::Apply, a little in each, so that no batch waits for a large move. Every method may
// throw SQLite::Exception; after a rollback what is known here is read anew.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "server/store/database.h"
#include "server/store/writes.h"

namespace pelab::store {

struct EpochStagingOptions {
  // A move begins when so many epochs wait, or after so many transactions: a reader of one curve
  // looks at all that wait.
  std::size_t rows = 16384;
  int transactions = 256;
  // A transaction moves at least so many epochs while a move is under way, and twice what it adds.
  std::size_t least_moved = 256;
  std::size_t moved_when_idle = 4096;
};

class EpochStaging {
 public:
  EpochStaging(Database& db, const EpochStagingOptions& options);

  // First and last in each transaction.
  void Begin();
  void End();
  // Instead of End, when the transaction was rolled back.
  void RolledBack() { known_ = false; }

  void Append(std::int64_t attempt_id, const Epoch& epoch);
  // Whether an epoch of the attempt waits.
  bool Holds(std::int64_t attempt_id) const;
  // Moves what waits of the job's attempts: its line is whole in `curves` from then on.
  void MoveJob(std::int64_t job_id);

  // Whether nothing waits, or is to be cleared away. MoveOn, in a transaction of its own, goes on
  // with that while nothing else is to be done.
  bool empty() const { return known_ && young_.empty() && !Moving(); }
  void MoveOn();

 private:
  using Rows =
      std::map<std::int64_t, std::vector<std::int64_t>>;  // attempt -> staged_ids, ascending

  bool Moving() const { return until_id_ > 0; }
  void Read();
  void BeginMove();
  void MoveSome(std::size_t budget);
  void ClearSome(std::size_t budget);
  void Move(const std::vector<std::int64_t>& staged_ids);
  void Extract(Rows& from, std::int64_t attempt_id);

  Database& db_;
  const EpochStagingOptions options_;
  bool known_ = false;
  Rows young_;
  std::size_t young_count_ = 0;
  // Never one that was there before in this process or is at most until_id, though rows go.
  std::int64_t next_id_ = 1;
  int transactions_ = 0;      // since the last move began, with something waiting
  std::size_t appended_ = 0;  // in this transaction
  // The move under way: first its attempts, in order; then the rows up to until_id are cleared.
  Rows moving_;
  std::int64_t until_id_ = 0;  // 0: none
  std::int64_t through_attempt_ = 0;
  std::int64_t cleared_to_ = 0;
};

}  // namespace pelab::store
