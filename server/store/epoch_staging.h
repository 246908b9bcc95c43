// Holds epochs between their arrival and their place in the attempt's curve. Epochs are appended to
// one table (staged_epochs), dozens to a page. Once there are many, they are moved into `curves`,
// attempt by attempt. Writing each epoch straight into its curve would cost one WAL page per epoch
// (migrations/0001_init.sql). The views show both tables, so a reader cannot tell where an
// epoch is stored.
//
// All of this happens inside the transactions of Store::Apply, a little in each, so that no batch
// waits for a large move. Every method except RolledBack may throw SQLite::Exception. After a
// rollback the state of this object is read again from the database.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "pelab/v1/fleet.pb.h"
#include "server/store/database.h"

namespace pelab::store {

// Stores an epoch of an attempt at once, without staging.
void StoreEpoch(Database& db, std::int64_t attempt_id, const v1::Epoch& epoch);

struct EpochStagingOptions {
  // A move begins when this many epochs are staged, or after this many transactions. Few epochs
  // should be staged, because a reader of one curve looks at all of them.
  std::size_t rows = 16384;
  int transactions = 256;
  // During a move, End moves this many epochs, or twice as many as its transaction added if that is
  // more. MoveOn moves `moved_when_idle`.
  std::size_t least_moved = 256;
  std::size_t moved_when_idle = 4096;
};

class EpochStaging {
 public:
  EpochStaging(Database& db, const EpochStagingOptions& options);

  // Call Begin first and End last in each transaction.
  void Begin();
  void End();
  // Call this in place of End when the transaction was rolled back.
  void RolledBack() { known_ = false; }

  void Append(std::int64_t attempt_id, const v1::Epoch& epoch);
  // Whether an epoch of the attempt is staged.
  bool Holds(std::int64_t attempt_id) const;
  // Moves the staged epochs of all the job's attempts: from then on its curve is complete in
  // `curves`.
  void MoveJob(std::int64_t job_id);

  // Whether nothing is staged and nothing is left to clear. MoveOn continues to move and to clear.
  // Call MoveOn in a transaction of its own while nothing else is to be written.
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
  // The staged_id of the next epoch: greater than until_id_ and than every staged_id in the table.
  std::int64_t next_id_ = 1;
  int transactions_ = 0;      // since the last move began, counted while something is staged
  std::size_t appended_ = 0;  // in this transaction
  // The move under way. First the attempts are moved, in order; then the rows up to until_id are
  // deleted.
  Rows moving_;
  std::int64_t until_id_ = 0;  // 0: no move is under way
  std::int64_t through_attempt_ = 0;
  std::int64_t cleared_to_ = 0;
};

}  // namespace pelab::store
