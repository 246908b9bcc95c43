// Reads what the scheduler needs when the coordinator starts.
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "core/base/json_text.h"
#include "server/store/analyses.h"
#include "server/store/batch.h"

namespace pelab::store {
namespace {

// The analyses of the sweeps in a list like "1,5". A million jobs have only a handful of distinct
// lists.
class AnalysesOfSweeps {
 public:
  explicit AnalysesOfSweeps(Database& db) : db_(db) {}

  const std::vector<std::pair<std::string, int>>& Of(const std::string& sweeps) {
    const auto found = known_.find(sweeps);
    if (found != known_.end()) return found->second;
    std::vector<Analysis> analyses;
    for (const auto number : absl::StrSplit(sweeps, ',', absl::SkipEmpty())) {
      std::int64_t sweep_id = 0;
      if (!absl::SimpleAtoi(number, &sweep_id)) continue;
      Query row = db_.Run("SELECT analyses_json FROM sweeps WHERE sweep_id = ?", sweep_id);
      if (!row.Step()) continue;
      for (Analysis& analysis : AnalysesFromJson(row.Text(0))) {
        analyses.push_back(std::move(analysis));
      }
    }
    return known_[sweeps] = VersionsOf(analyses);
  }

 private:
  Database& db_;
  std::map<std::string, std::vector<std::pair<std::string, int>>> known_;
};

std::set<std::int64_t> LiveSweeps(Database& db) {
  std::set<std::int64_t> live;
  Query rows = db.Run("SELECT sweep_id FROM sweeps WHERE state IN ('expanding', 'active')");
  while (rows.Step()) live.insert(rows.Int(0));
  return live;
}

// Assembles a queued job from rows, one row for each claim.
class ReadyBuilder {
 public:
  ReadyBuilder(Database& db, const std::function<void(ReadyJob)>& ready)
      : db_(db), ready_(ready), of_sweeps_(db) {}

  void Begin(const Query& row) {
    Emit();
    job_ = ReadReady(row);
    job_->sweep_id = 0;
    claims_.clear();
    asked_ = row.Int(kReadyAttempts + 1) != 0;
    // A job that was never tried has no stored analyses.
    untouched_ = row.Int(kReadyAttempts) == 0 && !asked_;
  }
  bool Holds(std::int64_t job_id) const { return job_ && job_->job_id == job_id; }
  void Claimed(const Claim& claim) {
    absl::StrAppend(&claims_, claim.sweep_id, ",");
    if (job_->sweep_id != 0) return job_->others.push_back(claim);
    job_->sweep_id = claim.sweep_id;
    job_->ordinal = claim.ordinal;
  }
  void Emit() {
    // A job without a claim belongs to a cancelled sweep that is not dropped yet.
    if (!job_ || (claims_.empty() && !asked_)) return;
    job_->requirement.analyses =
        untouched_ ? of_sweeps_.Of(claims_) : VersionsOf(NeededAnalyses(db_, job_->job_id));
    ready_(*std::move(job_));
    job_.reset();
  }

 private:
  Database& db_;
  const std::function<void(ReadyJob)>& ready_;
  AnalysesOfSweeps of_sweeps_;
  std::optional<ReadyJob> job_;
  std::string claims_;  // "1,5,"
  bool asked_ = false;
  bool untouched_ = false;
};

// One pass over two indexes, without grouping: nobody is served while a million jobs are read.
void RecoverReady(Database& db, const std::function<void(ReadyJob)>& ready) {
  static const std::string sql = absl::StrCat(
      "SELECT ", kReadyColumns,
      ", EXISTS (SELECT 1 FROM analysis_requests AS r WHERE r.job_id = j.job_id), "
      "coalesce(c.claimed, 0) FROM jobs AS j LEFT JOIN sweep_jobs AS c ON c.job_id = j.job_id "
      "WHERE j.state = 'queued' ORDER BY j.job_id, c.sweep_id, c.ordinal");
  const std::set<std::int64_t> live = LiveSweeps(db);
  ReadyBuilder builder(db, ready);
  Query rows = db.Run(sql.c_str());
  while (rows.Step()) {
    if (!builder.Holds(rows.Int(0))) builder.Begin(rows);
    const Claim claim{.sweep_id = rows.Int(1), .ordinal = rows.Int(2)};
    if (rows.Int(kReadyAttempts + 2) != 0 && live.count(claim.sweep_id) != 0) {
      builder.Claimed(claim);
    }
  }
  builder.Emit();
}

void RecoverOpen(Database& db, const std::function<void(OpenAttempt)>& open) {
  Query rows = db.Run(
      "SELECT a.attempt_id, a.worker_id, a.last_sequence, j.state IN ('cancelled', 'succeeded'), "
      "j.job_id, w.name, a.principal, a.started_at FROM attempts AS a JOIN jobs AS j USING "
      "(job_id) "
      "JOIN v_workers AS w USING (worker_id) WHERE a.outcome IS NULL "
      "ORDER BY a.attempt_id");
  while (rows.Step()) {
    open({.worker_id = rows.Text(1),
          .worker_name = rows.Text(5),
          .job = LoadReady(db, rows.Int(4)),
          .assignment = LoadAssignment(db, rows.Int(0)),
          .principal = rows.Text(6),
          .started_at = rows.Int(7),
          .started = rows.Int(2) > 0,
          .cancelled = rows.Int(3) != 0});
  }
}

std::vector<std::string> ExtensionsFromJson(const std::string& json) {
  std::vector<std::string> extensions;
  const auto array = ParseJson(json);
  if (!array.is_array()) return extensions;
  for (const auto& item : array) {
    if (item.is_string()) extensions.push_back(item.get<std::string>());
  }
  return extensions;
}

void RecoverExpanding(Database& db, const std::function<void(ExpandingSweep)>& expanding) {
  Query rows = db.Run(
      "SELECT sweep_id, document, overrides_json, expanded_cells, extensions_json FROM sweeps "
      "WHERE state = 'expanding' ORDER BY sweep_id");
  while (rows.Step()) {
    expanding({.sweep_id = rows.Int(0),
               .document = rows.Text(1),
               .overrides_json = rows.Text(2),
               .extensions = ExtensionsFromJson(rows.Text(4)),
               .expanded_cells = static_cast<std::uint64_t>(rows.Int(3))});
  }
}

// Reports live sweeps, and those that are being dropped or deleted.
void RecoverSweeps(Database& db, const std::function<void(RecoveredSweep)>& sweep) {
  Query rows = db.Run(
      "SELECT sweep_id, priority, paused, drop_from IS NOT NULL, deleted, owner FROM sweeps "
      "WHERE state IN ('expanding', 'active') OR drop_from IS NOT NULL OR deleted = 1 "
      "ORDER BY sweep_id");
  while (rows.Step()) {
    sweep({.settings = {.sweep_id = rows.Int(0),
                        .priority = static_cast<int>(rows.Int(1)),
                        .paused = rows.Int(2) != 0,
                        .owner = rows.Text(5)},
           .dropping = rows.Int(3) != 0,
           .deleting = rows.Int(4) != 0});
  }
}

}  // namespace

absl::Status Store::Recover(const std::function<void(RecoveredSweep)>& sweep,
                            const std::function<void(ReadyJob)>& ready,
                            const std::function<void(OpenAttempt)>& open,
                            const std::function<void(ExpandingSweep)>& expanding) {
  try {
    database_->Execute("UPDATE workers SET state = 'offline' WHERE state <> 'offline'");
    while (MoveEpochs()) {  // left by a process that was killed
    }
    RecoverSweeps(*database_, sweep);
    RecoverReady(*database_, ready);
    RecoverOpen(*database_, open);
    RecoverExpanding(*database_, expanding);
    return absl::OkStatus();
  } catch (const SQLite::Exception& error) {
    return ToStatus(error, "cannot start on the database");
  }
}

}  // namespace pelab::store
