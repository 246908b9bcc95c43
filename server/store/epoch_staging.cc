#include "server/store/epoch_staging.h"

#include <algorithm>
#include <string>
#include <utility>

namespace pelab::store {
namespace {

// Deleting rows in bulk, whole pages at a time, is cheap compared with moving them.
constexpr std::size_t kClearedPerMoved = 4;

const char* EpochSql(const char* sql) { return SqlFor(v1::Epoch::descriptor(), sql); }

}  // namespace

void StoreEpoch(Database& db, std::int64_t attempt_id, const v1::Epoch& epoch) {
  static const char* const sql =
      EpochSql("INSERT INTO curves (attempt_id, COLUMNS) VALUES (?, PARAMETERS)");
  db.Execute(sql, attempt_id, epoch);
}

EpochStaging::EpochStaging(Database& db, const EpochStagingOptions& options)
    : db_(db), options_(options) {}

void EpochStaging::Begin() {
  if (!known_) Read();
  appended_ = 0;
  if (Moving() || young_.empty()) return;
  ++transactions_;
  if (young_count_ >= options_.rows || transactions_ >= options_.transactions) BeginMove();
}

void EpochStaging::End() {
  if (Moving()) MoveSome(std::max(options_.least_moved, 2 * appended_));
}

void EpochStaging::Append(std::int64_t attempt_id, const v1::Epoch& epoch) {
  static const char* const sql = EpochSql(
      "INSERT INTO staged_epochs (staged_id, attempt_id, COLUMNS) VALUES (?, ?, PARAMETERS)");
  db_.Execute(sql, next_id_, attempt_id, epoch);
  young_[attempt_id].push_back(next_id_++);
  ++young_count_;
  ++appended_;
}

bool EpochStaging::Holds(std::int64_t attempt_id) const {
  return young_.count(attempt_id) > 0 || moving_.count(attempt_id) > 0;
}

void EpochStaging::MoveJob(std::int64_t job_id) {
  if (young_.empty() && moving_.empty()) return;
  std::vector<std::int64_t> attempts;
  {
    Query rows = db_.Run("SELECT attempt_id FROM attempts WHERE job_id = ?", job_id);
    while (rows.Step()) attempts.push_back(rows.Int(0));
  }
  for (const std::int64_t attempt_id : attempts) {
    Extract(moving_, attempt_id);  // the older epochs first
    if (const auto found = young_.find(attempt_id); found != young_.end()) {
      young_count_ -= found->second.size();
      Extract(young_, attempt_id);
    }
  }
}

// Moves one attempt before its turn. Its rows are deleted one by one.
void EpochStaging::Extract(Rows& from, std::int64_t attempt_id) {
  const auto found = from.find(attempt_id);
  if (found == from.end()) return;
  Move(found->second);
  for (const std::int64_t staged_id : found->second) {
    db_.Execute("DELETE FROM staged_epochs WHERE staged_id = ?", staged_id);
  }
  from.erase(found);
}

void EpochStaging::MoveOn() {
  if (!Moving() && !young_.empty()) BeginMove();
  if (Moving()) MoveSome(options_.moved_when_idle);
}

// Reads what an earlier process has left, or the state before a transaction that was rolled back.
void EpochStaging::Read() {
  young_.clear();
  moving_.clear();
  young_count_ = 0;
  cleared_to_ = 0;
  {
    Query move = db_.Run("SELECT until_id, through_attempt FROM epoch_move");
    move.Step();
    until_id_ = move.Int(0);
    through_attempt_ = move.Int(1);
  }
  next_id_ = until_id_ + 1;
  Query rows = db_.Run("SELECT staged_id, attempt_id FROM staged_epochs ORDER BY staged_id");
  while (rows.Step()) {
    const std::int64_t staged_id = rows.Int(0);
    const std::int64_t attempt_id = rows.Int(1);
    next_id_ = std::max(next_id_, staged_id + 1);
    if (staged_id > until_id_) {
      young_[attempt_id].push_back(staged_id);
      ++young_count_;
    } else if (attempt_id > through_attempt_) {
      moving_[attempt_id].push_back(staged_id);
    }
  }
  known_ = true;
}

void EpochStaging::BeginMove() {
  transactions_ = 0;
  young_count_ = 0;
  moving_ = std::exchange(young_, {});
  until_id_ = 0;
  for (const auto& [attempt_id, staged_ids] : moving_) {
    until_id_ = std::max(until_id_, staged_ids.back());
  }
  through_attempt_ = 0;
  cleared_to_ = 0;
}

// Moves at least `budget` epochs, but whole attempts, so that a single number (through_attempt)
// records the progress.
void EpochStaging::MoveSome(std::size_t budget) {
  std::size_t moved = 0;
  while (!moving_.empty() && moved < budget) {
    const auto next = moving_.begin();
    Move(next->second);
    moved += next->second.size();
    through_attempt_ = next->first;
    moving_.erase(next);
  }
  if (moved > 0) {
    db_.Execute("UPDATE epoch_move SET until_id = ?, through_attempt = ?", until_id_,
                through_attempt_);
  }
  if (moving_.empty()) ClearSome((budget - std::min(budget, moved)) * kClearedPerMoved);
}

void EpochStaging::ClearSome(std::size_t budget) {
  if (budget == 0) return;
  const std::int64_t left = until_id_ - cleared_to_;
  const bool last = static_cast<std::uint64_t>(left) <= budget;
  cleared_to_ = last ? until_id_ : cleared_to_ + static_cast<std::int64_t>(budget);
  db_.Execute("DELETE FROM staged_epochs WHERE staged_id <= ?", cleared_to_);
  if (!last) return;
  db_.Execute("UPDATE epoch_move SET until_id = 0, through_attempt = 0");
  until_id_ = 0;
}

void EpochStaging::Move(const std::vector<std::int64_t>& staged_ids) {
  static const char* const sql = EpochSql(
      "INSERT INTO curves (attempt_id, COLUMNS) "
      "SELECT attempt_id, COLUMNS FROM staged_epochs WHERE staged_id = ?");
  for (const std::int64_t staged_id : staged_ids) db_.Execute(sql, staged_id);
}

}  // namespace pelab::store
