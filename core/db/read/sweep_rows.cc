// Rows of sweeps, attempts, workers and logs.
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "core/base/json_text.h"
#include "core/base/strings.h"
#include "core/db/read/job_pages.h"
#include "core/db/read/queries.h"

namespace pelab::db {
namespace {

constexpr char kSelectSweeps[] =
    "SELECT sweep_id, name, protocol, state, priority, file_name, created_at, cells, new_jobs, "
    "stored_jobs, in_flight_jobs, failed_earlier_jobs, analysis_jobs, analysis_impossible_jobs, "
    "document, paused, extensions_json, overrides_json, note FROM sweeps WHERE deleted = 0 AND ";

void AddOverrides(const std::string& json, v1::Sweep& sweep) {
  const auto overrides = ParseJson(json);
  if (!overrides.is_array()) return;
  for (const auto& item : overrides) {
    if (!item.is_object()) continue;
    v1::Override& override = *sweep.add_overrides();
    override.set_field(item.value("field", ""));
    override.set_value(item.value("value", ""));
  }
}

v1::Sweep ReadSweep(SQLite::Statement& query, bool with_document) {
  v1::Sweep sweep;
  int i = 0;
  sweep.set_sweep_id(query.getColumn(i++).getInt64());
  sweep.set_name(query.getColumn(i++).getString());
  sweep.set_protocol(query.getColumn(i++).getString());
  v1::SweepState state = v1::SWEEP_STATE_UNSPECIFIED;
  v1::SweepState_Parse(UpperName("SWEEP_STATE_", query.getColumn(i++)), &state);
  sweep.set_state(state);
  sweep.set_priority(query.getColumn(i++).getInt());
  sweep.set_file_name(query.getColumn(i++).getString());
  sweep.set_created_at_ms(query.getColumn(i++).getInt64());
  sweep.set_cells(query.getColumn(i++).getInt64());
  v1::JobCounts& counts = *sweep.mutable_counts();
  counts.set_new_jobs(query.getColumn(i++).getInt64());
  counts.set_stored(query.getColumn(i++).getInt64());
  counts.set_in_flight(query.getColumn(i++).getInt64());
  counts.set_failed_earlier(query.getColumn(i++).getInt64());
  counts.set_total(counts.new_jobs() + counts.stored() + counts.in_flight() +
                   counts.failed_earlier());
  counts.set_analysis_jobs(query.getColumn(i++).getInt64());
  counts.set_analysis_impossible(query.getColumn(i++).getInt64());
  if (with_document) sweep.set_document(query.getColumn(i).getString());
  sweep.set_paused(query.getColumn(++i).getInt() != 0);
  const auto extensions = ParseJson(query.getColumn(++i).getString());
  for (const auto& seeds : extensions) {
    if (seeds.is_string()) sweep.add_extensions(seeds.get<std::string>());
  }
  ++i;
  if (with_document) AddOverrides(query.getColumn(i).getString(), sweep);
  sweep.set_note(query.getColumn(++i).getString());
  return sweep;
}

// Counts what the sweep's own jobs do now, not those of a later generation that the views show
// instead.
void CountJobs(SQLite::Database& db, v1::Sweep& sweep) {
  v1::StateCounts& jobs = *sweep.mutable_jobs();
  SQLite::Statement query(db,
                          "SELECT queued, assigned, running, succeeded, failed, cancelled, epochs, "
                          "epochs_done FROM sweep_counts WHERE sweep_id = ?");
  query.bind(1, sweep.sweep_id());
  if (!query.executeStep()) return;  // nothing of it is expanded yet
  jobs.set_queued(query.getColumn(0).getInt64());
  jobs.set_assigned(query.getColumn(1).getInt64());
  jobs.set_running(query.getColumn(2).getInt64());
  jobs.set_succeeded(query.getColumn(3).getInt64());
  jobs.set_failed(query.getColumn(4).getInt64());
  jobs.set_cancelled(query.getColumn(5).getInt64());
  sweep.set_epochs_total(query.getColumn(6).getInt64());
  sweep.set_epochs_done(query.getColumn(7).getInt64());
}

v1::AttemptRow ReadAttempt(SQLite::Statement& query) {
  v1::AttemptRow row;
  int i = 0;
  const auto next = [&] { return query.getColumn(i++); };
  row.set_attempt_id(next().getInt64());
  row.set_job_id(next().getInt64());
  row.set_number(next().getInt());
  row.set_worker(next().getString());
  row.set_device(next().getString());
  if (const auto c = next(); !c.isNull()) row.set_start_epoch(c.getInt());
  v1::AttemptOutcome outcome = v1::ATTEMPT_OUTCOME_UNSPECIFIED;
  v1::AttemptOutcome_Parse(UpperName("ATTEMPT_OUTCOME_", next()), &outcome);
  row.set_outcome(outcome);
  if (const auto c = next(); !c.isNull()) row.set_error(c.getString());
  row.set_started_at_ms(next().getInt64());
  if (const auto c = next(); !c.isNull()) row.set_ended_at_ms(c.getInt64());
  if (const auto c = next(); !c.isNull()) row.set_environment_json(c.getString());
  return row;
}

// Diverged jobs are few and have an index, so they are counted for all sweeps at once, or for
// `sweep` alone.
std::map<std::int64_t, std::uint64_t> CountDiverged(SQLite::Database& db,
                                                    std::optional<std::int64_t> sweep) {
  SQLite::Statement query(db,
                          "SELECT c.sweep_id, count(*) FROM jobs AS j INDEXED BY jobs_diverged "
                          "CROSS JOIN sweep_jobs AS c USING (job_id) WHERE j.diverged = 1 AND "
                          "j.trained AND (?1 IS NULL OR c.sweep_id = ?1) GROUP BY c.sweep_id");
  if (sweep) query.bind(1, *sweep);
  std::map<std::int64_t, std::uint64_t> counts;
  while (query.executeStep()) {
    counts[query.getColumn(0).getInt64()] =
        static_cast<std::uint64_t>(query.getColumn(1).getInt64());
  }
  return counts;
}

struct AttemptId {
  std::int64_t id = 0;
  int number = 0;
};

absl::StatusOr<AttemptId> FindAttempt(SQLite::Database& db, std::int64_t job, int number) {
  SQLite::Statement query(db,
                          "SELECT attempt_id, number FROM v_attempts WHERE job_id = ?1 AND "
                          "(?2 = 0 OR number = ?2) ORDER BY number DESC LIMIT 1");
  query.bind(1, job);
  query.bind(2, number);
  if (query.executeStep())
    return AttemptId{query.getColumn(0).getInt64(), query.getColumn(1).getInt()};
  if (number == 0) return absl::NotFoundError(Concat("job ", job, " has not been tried yet"));
  return absl::NotFoundError(Concat("job ", job, " has no attempt ", number));
}

}  // namespace

absl::StatusOr<v1::ListSweepsResponse> QuerySweeps(SQLite::Database& db,
                                                   const v1::ListSweepsRequest& request) {
  absl::StatusOr<int> limit = PageLimit(request.page());
  if (!limit.ok()) return limit.status();
  std::int64_t before = INT64_MAX;
  if (!request.page().after().empty() && !ParseNumber(request.page().after(), &before)) {
    return absl::InvalidArgumentError(
        Concat("page position \"", request.page().after(), "\" is not one of an answer"));
  }
  SQLite::Statement query(db, Concat(kSelectSweeps, "sweep_id < ? ORDER BY sweep_id DESC LIMIT ?"));
  query.bind(1, before);
  query.bind(2, *limit + 1);
  v1::ListSweepsResponse response;
  while (query.executeStep()) {
    if (response.sweeps_size() == *limit) {
      response.set_next(Concat(response.sweeps(*limit - 1).sweep_id()));
      break;
    }
    *response.add_sweeps() = ReadSweep(query, /*with_document=*/false);
  }
  const auto diverged = CountDiverged(db, std::nullopt);
  for (v1::Sweep& sweep : *response.mutable_sweeps()) {
    CountJobs(db, sweep);
    const auto its = diverged.find(sweep.sweep_id());
    if (its != diverged.end()) sweep.set_diverged(its->second);
  }
  return response;
}

absl::StatusOr<v1::Sweep> QuerySweep(SQLite::Database& db, const std::string& sweep,
                                     bool with_jobs) {
  absl::StatusOr<std::int64_t> id = FindSweep(db, sweep);
  if (!id.ok()) return id.status();
  SQLite::Statement query(db, Concat(kSelectSweeps, "sweep_id = ?"));
  query.bind(1, *id);
  query.executeStep();
  v1::Sweep found = ReadSweep(query, /*with_document=*/true);
  if (with_jobs) {
    CountJobs(db, found);
    for (const auto& [sweep_id, count] : CountDiverged(db, *id)) found.set_diverged(count);
  }
  return found;
}

absl::StatusOr<v1::ListAttemptsResponse> QueryAttempts(SQLite::Database& db,
                                                       const v1::ListAttemptsRequest& request) {
  std::size_t bytes = 0;
  return PageOfJobs<v1::ListAttemptsResponse>(
      db, request,
      "SELECT attempt_id, job_id, number, worker, device, start_epoch, outcome, error, started_at, "
      "ended_at, environment_json FROM v_attempts WHERE job_id = ?1 AND (?2 OR number > ?3) "
      "ORDER BY number",
      "n",
      [&](SQLite::Statement& query) {
        v1::AttemptRow row = ReadAttempt(query);
        bytes += row.environment_json().size() + row.error().size();
        return row;
      },
      [](const v1::AttemptRow& row) { return Concat(row.number()); }, {},
      [&] { return bytes >= kMaxTextBytes; });
}

v1::ListWorkersResponse QueryWorkers(SQLite::Database& db) {
  v1::ListWorkersResponse response;
  SQLite::Statement query(db,
                          "SELECT worker_id, host, devices, slots, state, last_seen_at, version, "
                          "busy_slots, drain, name FROM v_workers ORDER BY name, worker_id");
  while (query.executeStep()) {
    v1::WorkerRow& row = *response.add_workers();
    int i = 0;
    row.set_worker_id(query.getColumn(i++).getString());
    row.set_host(query.getColumn(i++).getString());
    row.set_devices_json(query.getColumn(i++).getString());
    row.set_slots(query.getColumn(i++).getInt());
    row.set_state(query.getColumn(i++).getString());
    row.set_last_seen_at_ms(query.getColumn(i++).getInt64());
    row.set_version(query.getColumn(i++).getString());
    row.set_busy_slots(query.getColumn(i++).getInt());
    if (const auto drain = query.getColumn(i++); !drain.isNull()) row.set_drain(drain.getString());
    row.set_name(query.getColumn(i++).getString());
  }
  return response;
}

absl::StatusOr<std::vector<v1::LogPart>> QueryLog(SQLite::Database& db, const std::string& job,
                                                  int attempt, std::uint64_t offset) {
  absl::StatusOr<std::int64_t> id = FindJob(db, job);
  if (!id.ok()) return id.status();
  absl::StatusOr<AttemptId> found = FindAttempt(db, *id, attempt);
  if (!found.ok()) return found.status();
  SQLite::Statement query(db,
                          "SELECT byte_offset, data FROM logs WHERE attempt_id = ? AND "
                          "byte_offset + length(data) > ? ORDER BY byte_offset");
  query.bind(1, found->id);
  query.bind(2, static_cast<std::int64_t>(offset));
  std::vector<v1::LogPart> parts;
  while (query.executeStep()) {
    v1::LogPart part;
    part.set_attempt(found->number);
    const auto start = static_cast<std::uint64_t>(query.getColumn(0).getInt64());
    const std::string data = query.getColumn(1).getString();
    const std::uint64_t skip = offset > start ? offset - start : 0;
    part.set_offset(start + skip);
    part.set_data(data.substr(skip));
    parts.push_back(std::move(part));
  }
  return parts;
}

}  // namespace pelab::db
