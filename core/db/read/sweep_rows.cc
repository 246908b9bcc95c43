// Rows of sweeps, attempts, workers and logs.
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string_view>

#include "core/base/json_text.h"
#include "core/base/strings.h"
#include "core/db/read/job_pages.h"
#include "core/db/read/queries.h"

namespace pelab::db {
namespace {

// The columns that the table of sweeps has. Left out are the fields that are computed for each
// request and, for lists, the document.
const RowColumns& SweepColumns(bool with_document) {
  const std::set<std::string> asked = {"epochs_total", "epochs_done", "waiting_reason", "diverged"};
  static const auto& all = *new RowColumns(v1::Sweep::descriptor(), asked);
  static const auto& listed = *new RowColumns(v1::Sweep::descriptor(), [&] {
    std::set<std::string> without = asked;
    without.insert("document");
    return without;
  }());
  return with_document ? all : listed;
}

std::string SelectSweeps(bool with_document, std::string_view condition) {
  return Concat("SELECT ", SweepColumns(with_document).sql(),
                ", new_jobs, stored_jobs, in_flight_jobs, failed_earlier_jobs, analysis_jobs, "
                "analysis_impossible_jobs, extensions_json, overrides_json FROM sweeps WHERE "
                "deleted = 0 AND ",
                condition);
}

void AddOverrides(const std::string& json, v1::Sweep& sweep) {
  const auto overrides = ParseJson(json);
  if (!overrides.is_array()) return;
  for (const auto& item : overrides) {
    if (!item.is_object()) continue;
    const auto text = [&item](const char* name) {
      const auto member = item.find(name);
      return member != item.end() && member->is_string() ? member->get<std::string>() : "";
    };
    v1::Override& override = *sweep.add_overrides();
    override.set_field(text("field"));
    override.set_value(text("value"));
  }
}

// Adds the bytes of its texts to `text_bytes`.
v1::Sweep ReadSweep(const RawStatement& query, bool with_document, std::size_t& text_bytes) {
  v1::Sweep sweep;
  const RowColumns& columns = SweepColumns(with_document);
  text_bytes += columns.Read(query, sweep);
  int i = columns.size();
  v1::JobCounts& counts = *sweep.mutable_counts();
  counts.set_new_jobs(static_cast<std::uint64_t>(query.Integer(i++)));
  counts.set_stored(static_cast<std::uint64_t>(query.Integer(i++)));
  counts.set_in_flight(static_cast<std::uint64_t>(query.Integer(i++)));
  counts.set_failed_earlier(static_cast<std::uint64_t>(query.Integer(i++)));
  counts.set_total(counts.new_jobs() + counts.stored() + counts.in_flight() +
                   counts.failed_earlier());
  counts.set_analysis_jobs(static_cast<std::uint64_t>(query.Integer(i++)));
  counts.set_analysis_impossible(static_cast<std::uint64_t>(query.Integer(i++)));
  const auto extensions = ParseJson(query.Text(i++));
  for (const auto& seeds : extensions) {
    if (!seeds.is_string()) continue;
    sweep.add_extensions(seeds.get<std::string>());
    text_bytes += sweep.extensions().rbegin()->size();
  }
  if (with_document) AddOverrides(query.Text(i), sweep);
  return sweep;
}

// Counts the sweep's own jobs by state. The views may show jobs of a later generation instead.
void CountJobs(Connection& db, v1::Sweep& sweep) {
  const RowColumns& columns = ColumnsOf<v1::StateCounts>();
  RawStatement query(db, Concat("SELECT ", columns.sql(),
                                ", epochs, epochs_done FROM sweep_counts WHERE sweep_id = ?"));
  query.Bind(1, sweep.sweep_id());
  v1::StateCounts& jobs = *sweep.mutable_jobs();
  if (!query.Step()) return;  // none of its cells is expanded yet
  columns.Read(query, jobs);
  sweep.set_epochs_total(static_cast<std::uint64_t>(query.Integer(columns.size())));
  sweep.set_epochs_done(static_cast<std::uint64_t>(query.Integer(columns.size() + 1)));
}

// Diverged jobs are few and have an index, so they are counted for all sweeps at once, or for
// `sweep` alone.
std::map<std::int64_t, std::uint64_t> CountDiverged(Connection& db,
                                                    std::optional<std::int64_t> sweep) {
  RawStatement query(db,
                     "SELECT c.sweep_id, count(*) FROM jobs AS j INDEXED BY jobs_diverged "
                     "CROSS JOIN sweep_jobs AS c USING (job_id) WHERE j.diverged = 1 AND "
                     "j.trained AND (?1 IS NULL OR c.sweep_id = ?1) GROUP BY c.sweep_id");
  if (sweep) query.Bind(1, *sweep);
  std::map<std::int64_t, std::uint64_t> counts;
  while (query.Step()) {
    counts[query.Integer(0)] = static_cast<std::uint64_t>(query.Integer(1));
  }
  return counts;
}

// The last worker of a page. As text: the bytes of the name, a colon, the name and the id, because
// a name may contain anything.
struct WorkerPlace {
  std::string name;
  std::string worker_id;
};
absl::StatusOr<WorkerPlace> ParseWorkerPlace(const std::string& text) {
  if (text.empty()) return WorkerPlace{};
  const std::size_t colon = text.find(':');
  std::int64_t bytes = 0;
  if (colon == std::string::npos || !ParseNumber(text.substr(0, colon), &bytes) ||
      static_cast<std::size_t>(bytes) > text.size() - colon - 1) {
    return absl::InvalidArgumentError(
        Concat("page position \"", text, "\" is not one of an answer"));
  }
  const auto name = static_cast<std::size_t>(bytes);
  return WorkerPlace{text.substr(colon + 1, name), text.substr(colon + 1 + name)};
}

struct AttemptId {
  std::int64_t id = 0;
  int number = 0;
};

absl::StatusOr<AttemptId> FindAttempt(Connection& db, std::int64_t job, int number) {
  RawStatement query(db,
                     "SELECT attempt_id, number FROM v_attempts WHERE job_id = ?1 AND "
                     "(?2 = 0 OR number = ?2) ORDER BY number DESC LIMIT 1");
  query.Bind(1, job);
  query.Bind(2, std::int64_t{number});
  if (query.Step()) return AttemptId{query.Integer(0), static_cast<int>(query.Integer(1))};
  if (number == 0) return absl::NotFoundError(Concat("job ", job, " has not been tried yet"));
  return absl::NotFoundError(Concat("job ", job, " has no attempt ", number));
}

}  // namespace

absl::StatusOr<v1::ListSweepsResponse> QuerySweeps(Connection& db,
                                                   const v1::ListSweepsRequest& request) {
  absl::StatusOr<int> limit = PageLimit(request.page());
  if (!limit.ok()) return limit.status();
  std::int64_t before = INT64_MAX;
  if (!request.page().after().empty() && !ParseNumber(request.page().after(), &before)) {
    return absl::InvalidArgumentError(
        Concat("page position \"", request.page().after(), "\" is not one of an answer"));
  }
  RawStatement query(
      db, SelectSweeps(/*with_document=*/false, "sweep_id < ? ORDER BY sweep_id DESC LIMIT ?"));
  query.Bind(1, before);
  query.Bind(2, std::int64_t{*limit} + 1);
  v1::ListSweepsResponse response;
  std::size_t text_bytes = 0;
  while (query.Step()) {
    if (response.sweeps_size() == *limit || text_bytes >= kMaxTextBytes) {
      response.set_next(Concat(response.sweeps().rbegin()->sweep_id()));
      break;
    }
    *response.add_sweeps() = ReadSweep(query, /*with_document=*/false, text_bytes);
  }
  const auto diverged = CountDiverged(db, std::nullopt);
  for (v1::Sweep& sweep : *response.mutable_sweeps()) {
    CountJobs(db, sweep);
    const auto its = diverged.find(sweep.sweep_id());
    if (its != diverged.end()) sweep.set_diverged(its->second);
  }
  return response;
}

absl::StatusOr<v1::Sweep> QuerySweep(Connection& db, const std::string& sweep, bool with_jobs) {
  absl::StatusOr<std::int64_t> id = FindSweep(db, sweep);
  if (!id.ok()) return id.status();
  RawStatement query(db, SelectSweeps(/*with_document=*/true, "sweep_id = ?"));
  query.Bind(1, *id);
  query.Step();
  std::size_t text_bytes = 0;  // one sweep has no pages
  v1::Sweep found = ReadSweep(query, /*with_document=*/true, text_bytes);
  if (with_jobs) {
    CountJobs(db, found);
    for (const auto& [sweep_id, count] : CountDiverged(db, *id)) found.set_diverged(count);
  }
  return found;
}

std::vector<v1::Sweep> QuerySweepsOfJob(Connection& db, std::int64_t job_id, bool claimed) {
  RawStatement query(db,
                     "SELECT s.sweep_id, s.name, s.owner FROM sweep_jobs AS c JOIN sweeps AS s "
                     "USING (sweep_id) WHERE c.job_id = ?1 AND (c.claimed = 1 OR NOT ?2) AND "
                     "s.deleted = 0 ORDER BY s.sweep_id");
  query.Bind(1, job_id);
  query.Bind(2, std::int64_t{claimed});
  std::vector<v1::Sweep> sweeps;
  while (query.Step()) {
    v1::Sweep& sweep = sweeps.emplace_back();
    sweep.set_sweep_id(query.Integer(0));
    sweep.set_name(std::string(query.Text(1)));
    sweep.set_owner(std::string(query.Text(2)));
  }
  return sweeps;
}

absl::StatusOr<v1::ListAttemptsResponse> QueryAttempts(Connection& db,
                                                       const v1::ListAttemptsRequest& request) {
  return PageOfJobs<v1::ListAttemptsResponse>(
      db, request, " FROM v_attempts WHERE job_id = ?1 AND (?2 OR number > ?3) ORDER BY number",
      "n", [](const v1::AttemptRow& row) { return Concat(row.number()); });
}

absl::StatusOr<v1::ListWorkersResponse> QueryWorkers(Connection& db,
                                                     const v1::ListWorkersRequest& request) {
  const absl::StatusOr<int> limit = PageLimit(request.page());
  if (!limit.ok()) return limit.status();
  const absl::StatusOr<WorkerPlace> place = ParseWorkerPlace(request.page().after());
  if (!place.ok()) return place.status();
  // The coordinator adds the last two fields; they are not stored.
  static const auto& columns =
      *new RowColumns(v1::WorkerRow::descriptor(), {"silent_ms", "lease_left_ms", "time_left_ms"});
  v1::ListWorkersResponse response;
  RawStatement query(db, Concat("SELECT ", columns.sql(),
                                " FROM (SELECT *, devices AS devices_json FROM v_workers) "
                                "WHERE (name, worker_id) > (?, ?) ORDER BY name, worker_id "
                                "LIMIT ?"));
  query.Bind(1, place->name);
  query.Bind(2, place->worker_id);
  query.Bind(3, std::int64_t{*limit} + 1);
  std::size_t text_bytes = 0;
  while (query.Step()) {
    if (response.workers_size() == *limit || text_bytes >= kMaxTextBytes) {
      const v1::WorkerRow& last = *response.workers().rbegin();
      response.set_next(Concat(last.name().size(), ":", last.name(), last.worker_id()));
      break;
    }
    text_bytes += columns.Read(query, *response.add_workers());
  }
  return response;
}

absl::StatusOr<std::vector<v1::LogPart>> QueryLog(Connection& db, const std::string& job,
                                                  int attempt, std::uint64_t offset) {
  absl::StatusOr<std::int64_t> id = FindJob(db, job);
  if (!id.ok()) return id.status();
  absl::StatusOr<AttemptId> found = FindAttempt(db, *id, attempt);
  if (!found.ok()) return found.status();
  RawStatement query(db,
                     "SELECT byte_offset, data FROM logs WHERE attempt_id = ? AND "
                     "byte_offset + length(data) > ? ORDER BY byte_offset");
  query.Bind(1, found->id);
  query.Bind(2, static_cast<std::int64_t>(offset));
  std::vector<v1::LogPart> parts;
  while (query.Step()) {
    v1::LogPart part;
    part.set_attempt(found->number);
    const auto start = static_cast<std::uint64_t>(query.Integer(0));
    const std::string data = query.Bytes(1);
    const std::uint64_t skip = offset > start ? offset - start : 0;
    part.set_offset(start + skip);
    part.set_data(data.substr(skip));
    parts.push_back(std::move(part));
  }
  return parts;
}

}  // namespace pelab::db
