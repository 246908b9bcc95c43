// What the scheduler rebuilds itself from when the coordinator starts.
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "server/store/analyses.h"
#include "server/store/batch.h"

namespace pelab::store {
namespace {

// The oldest live claim of every job: bare columns of an aggregate with min() come from its row.
constexpr char kOldestClaim[] =
    "(SELECT c.job_id, min(c.sweep_id) AS sweep_id, c.ordinal, "
    "group_concat(c.sweep_id) AS claims FROM sweep_jobs AS c "
    "JOIN sweeps AS s USING (sweep_id) WHERE c.claimed = 1 "
    "AND s.state IN ('expanding', 'active') GROUP BY c.job_id) AS c USING (job_id)";

// What the sweeps of a list "1,5" ask for: a handful of lists for a million jobs.
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

void RecoverReady(Database& db, const std::function<void(ReadyJob)>& ready) {
  static const std::string sql =
      absl::StrCat("SELECT ", kReadyColumns,
                   ", coalesce(c.claims, ''), EXISTS (SELECT 1 FROM analysis_requests AS r "
                   "WHERE r.job_id = j.job_id) FROM jobs AS j LEFT JOIN ",
                   kOldestClaim, " WHERE j.state = 'queued' ORDER BY j.job_id");
  AnalysesOfSweeps of_sweeps(db);
  Query rows = db.Run(sql.c_str());
  while (rows.Step()) {
    ReadyJob job = ReadReady(rows);
    const std::string claims = rows.Text(kReadyAttempts + 1);
    const bool asked = rows.Int(kReadyAttempts + 2) != 0;
    // Of a sweep that is cancelled, and not dropped yet.
    if (claims.empty() && !asked) continue;
    if (claims.find(',') != std::string::npos) job.others = OtherClaims(db, job);
    // Nothing is stored of a job that was never tried.
    const bool untouched = rows.Int(kReadyAttempts) == 0 && !asked;
    job.requirement.analyses =
        untouched ? of_sweeps.Of(claims) : VersionsOf(NeededAnalyses(db, job.job_id));
    ready(std::move(job));
  }
}

void RecoverOpen(Database& db, const std::function<void(OpenAttempt)>& open) {
  static const std::string sql = absl::StrCat(
      "SELECT ", kReadyColumns,
      ", a.attempt_id, a.worker_id, a.last_sequence, j.state IN ('cancelled', 'succeeded') "
      "FROM jobs AS j "
      "JOIN attempts AS a ON a.job_id = j.job_id AND a.outcome IS NULL LEFT JOIN ",
      kOldestClaim, " ORDER BY a.attempt_id");
  Query rows = db.Run(sql.c_str());
  while (rows.Step()) {
    constexpr int kNext = kReadyAttempts + 1;
    open({.worker_id = rows.Text(kNext + 1),
          .job = ReadReady(rows),
          .assignment = LoadAssignment(db, rows.Int(kNext)),
          .started = rows.Int(kNext + 2) > 0,
          .cancelled = rows.Int(kNext + 3) != 0});
  }
}

std::vector<std::string> ExtensionsFromJson(const std::string& json) {
  std::vector<std::string> extensions;
  const auto array = nlohmann::json::parse(json, nullptr, /*allow_exceptions=*/false);
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

// Live sweeps, and those that are being dropped.
void RecoverSweeps(Database& db, const std::function<void(RecoveredSweep)>& sweep) {
  Query rows = db.Run(
      "SELECT sweep_id, priority, paused, drop_from IS NOT NULL FROM sweeps "
      "WHERE state IN ('expanding', 'active') OR drop_from IS NOT NULL ORDER BY sweep_id");
  while (rows.Step()) {
    sweep({.standing = {.sweep_id = rows.Int(0),
                        .priority = static_cast<int>(rows.Int(1)),
                        .paused = rows.Int(2) != 0},
           .dropping = rows.Int(3) != 0});
  }
}

}  // namespace

absl::Status Store::Recover(const std::function<void(RecoveredSweep)>& sweep,
                            const std::function<void(ReadyJob)>& ready,
                            const std::function<void(OpenAttempt)>& open,
                            const std::function<void(ExpandingSweep)>& expanding) {
  try {
    database_->Execute("UPDATE workers SET state = 'offline' WHERE state <> 'offline'");
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
