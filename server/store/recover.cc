// What the scheduler rebuilds itself from when the coordinator starts.
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "server/store/batch.h"

namespace pelab::store {
namespace {

// The oldest live claim of every job: bare columns of an aggregate with min() come from its row.
constexpr char kOldestClaim[] =
    "(SELECT c.job_id, min(c.sweep_id) AS sweep_id, c.ordinal FROM sweep_jobs AS c "
    "JOIN sweeps AS s USING (sweep_id) WHERE c.claimed = 1 "
    "AND s.state IN ('expanding', 'active') GROUP BY c.job_id) AS c USING (job_id)";

void RecoverReady(Database& db, const std::function<void(ReadyJob)>& ready) {
  static const std::string sql =
      absl::StrCat("SELECT ", kReadyColumns, " FROM jobs AS j LEFT JOIN ", kOldestClaim,
                   " WHERE j.state = 'queued' ORDER BY j.job_id");
  Query rows = db.Run(sql.c_str());
  while (rows.Step()) ready(ReadReady(rows));
}

void RecoverOpen(Database& db, const std::function<void(OpenAttempt)>& open) {
  static const std::string sql = absl::StrCat(
      "SELECT ", kReadyColumns,
      ", a.attempt_id, a.worker_id, a.last_sequence, j.state = 'cancelled' FROM jobs AS j "
      "JOIN attempts AS a ON a.job_id = j.job_id AND a.outcome IS NULL LEFT JOIN ",
      kOldestClaim, " ORDER BY a.attempt_id");
  Query rows = db.Run(sql.c_str());
  while (rows.Step()) {
    open({.worker_id = rows.Text(12),
          .job = ReadReady(rows),
          .assignment = LoadAssignment(db, rows.Int(11)),
          .started = rows.Int(13) > 0,
          .cancelled = rows.Int(14) != 0});
  }
}

void RecoverExpanding(Database& db, const std::function<void(ExpandingSweep)>& expanding) {
  Query rows = db.Run(
      "SELECT sweep_id, document, overrides_json, expanded_cells FROM sweeps "
      "WHERE state = 'expanding' ORDER BY sweep_id");
  while (rows.Step()) {
    expanding({.sweep_id = rows.Int(0),
               .document = rows.Text(1),
               .overrides_json = rows.Text(2),
               .expanded_cells = static_cast<std::uint64_t>(rows.Int(3))});
  }
}

}  // namespace

absl::Status Store::Recover(const std::function<void(ReadyJob)>& ready,
                            const std::function<void(OpenAttempt)>& open,
                            const std::function<void(ExpandingSweep)>& expanding) {
  try {
    database_->Execute("UPDATE workers SET state = 'offline' WHERE state <> 'offline'");
    RecoverReady(*database_, ready);
    RecoverOpen(*database_, open);
    RecoverExpanding(*database_, expanding);
    return absl::OkStatus();
  } catch (const SQLite::Exception& error) {
    return ToStatus(error, "cannot read the database");
  }
}

}  // namespace pelab::store
