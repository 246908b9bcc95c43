// The attempts that send events. The store keeps their rows in memory after it has read them, so
// that an epoch costs writing but no reading. Internal to the store; one thread at a time.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "server/limits.h"
#include "server/store/writes.h"

namespace pelab::store {

// An attempt and its job's summary. The store writes it once per batch, so many epochs of one
// attempt cost one update of its rows.
struct AttemptRow {
  std::int64_t attempt_id = 0;
  std::uint64_t token = 0;
  std::uint64_t last_sequence = 0;
  std::int64_t job_id = 0;
  std::int64_t configuration_id = 0;
  std::string worker_id;
  std::string device;
  std::string analyses_json;
  std::optional<int> start_epoch;
  bool open = false;
  bool trained = false;  // the job is trained; this attempt only adds analyses
  // Columns of the job.
  std::optional<Execution> execution;
  int epochs = 0;
  int epochs_done = 0;
  int epochs_counted = 0;  // the part of epochs_done that the sweeps' counts include
  std::optional<std::vector<std::int64_t>> sweeps;  // that claim the job, once they were read
  std::optional<v1::Epoch> last;                    // the last epoch of this batch
  std::optional<std::int64_t> best_correct;
  std::optional<std::int64_t> best_total;
  std::optional<double> wall_seconds;  // set by this batch

  bool sequence_dirty = false;
};
// Rows by attempt_id. A row equals what the database has, except in the batch that changes it.
// Before another write changes attempts or jobs with SQL, and after a transaction that was rolled
// back, all rows must be forgotten.
class AttemptRows {
 public:
  // Returns a row, which the batch then writes back, or nullptr if it must be read first.
  AttemptRow* Use(std::int64_t attempt_id) {
    const auto found = rows_.find(attempt_id);
    if (found == rows_.end()) return nullptr;
    used_.push_back(attempt_id);
    return &found->second;
  }
  AttemptRow& Add(AttemptRow row) {
    const std::int64_t attempt_id = row.attempt_id;
    used_.push_back(attempt_id);
    return rows_.insert_or_assign(attempt_id, std::move(row)).first->second;
  }
  void Forget(std::int64_t attempt_id) { rows_.erase(attempt_id); }
  void ForgetAll() {
    rows_.clear();
    used_.clear();
  }
  // Bounds the memory. Nobody may have a row in hand.
  void Bound() {
    if (rows_.size() > limits::kAttemptsInMemory) ForgetAll();
  }
  // Calls f for each row that was used since the last call.
  template <typename F>
  void ForEachUsed(const F& f) {
    for (const std::int64_t attempt_id : used_) {
      if (const auto row = rows_.find(attempt_id); row != rows_.end()) f(row->second);
    }
    used_.clear();
  }

 private:
  std::unordered_map<std::int64_t, AttemptRow> rows_;
  std::vector<std::int64_t> used_;  // in this batch
};

}  // namespace pelab::store
