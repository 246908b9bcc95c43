#include "server/http/api.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "core/base/strings.h"
#include "core/results/names.h"
#include "core/results/rows.h"
#include "server/http/job_sweep.h"
#include "server/http/lists.h"
#include "server/http/progress.h"
#include "server/http/unknown_values.h"
#include "server/sched/worker_rows.h"

namespace pelab::http {
namespace {

using render::Json;

constexpr std::int64_t kMostPack = 64;  // of pelab-worker --pack

Json OrNull(const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); }

bool Live(const v1::Sweep& sweep) {
  return sweep.state() == v1::SWEEP_STATE_EXPANDING || sweep.state() == v1::SWEEP_STATE_ACTIVE;
}

// The progress of the open attempts of a sweep's running jobs.
absl::StatusOr<std::vector<Pace>> Paces(db::Reader& reader, std::int64_t sweep_id,
                                        std::int64_t now_ms) {
  v1::ListJobsRequest running;
  running.mutable_filter()->set_sweep(Concat(sweep_id));
  running.mutable_filter()->add_states(v1::JOB_STATE_RUNNING);
  running.set_specs_apart(true);
  running.mutable_page()->set_limit(db::kMaxPage);
  PELAB_ASSIGN_OR_RETURN(const v1::ListJobsResponse jobs, reader.ListJobs(running));
  std::map<std::int64_t, int> epochs_done;
  v1::JobFilter filter;
  for (const v1::JobRow& job : jobs.jobs()) {
    if (job.trained()) continue;  // it is trained and only adds analyses
    epochs_done[job.job_id()] = job.epochs_done();
    filter.add_jobs(Concat(job.job_id()));
  }
  std::vector<Pace> paces;
  if (epochs_done.empty()) return paces;
  PELAB_ASSIGN_OR_RETURN(const auto attempts,
                         AllRows<v1::AttemptRow>(reader, &db::Reader::ListAttempts, filter));
  for (const v1::AttemptRow& attempt : attempts) {
    if (attempt.outcome() != v1::ATTEMPT_OUTCOME_UNSPECIFIED || !attempt.has_start_epoch())
      continue;
    paces.push_back({.epochs = std::max(epochs_done[attempt.job_id()] - attempt.start_epoch(), 0),
                     .seconds = static_cast<double>(now_ms - attempt.started_at_ms()) / 1000});
  }
  return paces;
}

// Epochs that failed and cancelled jobs lack. They are not counted if there are too many such jobs;
// the estimate of the time left is then too long.
absl::StatusOr<std::uint64_t> EpochsGivenUp(db::Reader& reader, const v1::Sweep& sweep) {
  const std::uint64_t given_up = sweep.jobs().failed() + sweep.jobs().cancelled();
  if (!Live(sweep) || given_up == 0 || given_up > kMostJobs / 2) return std::uint64_t{0};
  v1::JobFilter filter;
  filter.set_sweep(Concat(sweep.sweep_id()));
  filter.add_states(v1::JOB_STATE_FAILED);
  filter.add_states(v1::JOB_STATE_CANCELLED);
  PELAB_ASSIGN_OR_RETURN(const results::JobList jobs, AllJobs(reader, filter));
  std::uint64_t epochs = 0;
  for (const v1::JobRow& job : jobs) {
    epochs += static_cast<std::uint64_t>(std::max(job.epochs() - job.epochs_done(), 0));
  }
  return epochs;
}

Json WorkerJson(const v1::WorkerRow& row, const sched::WorkerStatus* status, std::int64_t now_ms) {
  Json json = results::ToJson(row);
  json["utilisation"] =
      row.slots() > 0 ? Json(static_cast<double>(row.busy_slots()) / row.slots()) : Json(nullptr);
  json["connected"] = status != nullptr && status->connected;
  json["quarantined"] = status != nullptr && status->quarantine_left > absl::ZeroDuration();
  Json leases = Json::array();
  if (status != nullptr) {
    for (const auto& lease : status->leases) {
      leases.push_back({{"slot", lease.slot},
                        {"job_id", lease.job_id},
                        {"attempt_id", lease.attempt_id},
                        {"renewed_at_ms", now_ms - absl::ToInt64Milliseconds(lease.age)},
                        {"ends_at_ms", now_ms + absl::ToInt64Milliseconds(lease.left)}});
    }
  }
  json["leases"] = std::move(leases);
  json["loads"] = Json::array();
  if (status != nullptr) {
    for (const sched::DeviceLoad& load : status->loads) {
      json["loads"].push_back(
          {{"device", load.device},
           {"busy_percent", load.busy_percent ? Json(*load.busy_percent) : Json(nullptr)},
           {"memory_used_bytes", load.memory_used},
           {"memory_total_bytes", load.memory_total}});
    }
  }
  return json;
}

v1::Page PageOf(const Query& query, std::int64_t limit) {
  v1::Page page;
  page.set_after(query.Text("after"));
  page.set_limit(static_cast<int>(limit));
  return page;
}

// The names of the workers of these attempts, by id.
absl::StatusOr<std::map<std::string, std::string>> NamesOfWorkers(
    db::Reader& reader, const std::vector<v1::AttemptRow>& attempts) {
  std::set<std::string> wanted;
  for (const v1::AttemptRow& attempt : attempts) wanted.insert(attempt.worker());
  std::map<std::string, std::string> names;
  v1::ListWorkersRequest request;
  request.mutable_page()->set_limit(db::kMaxPage);
  while (!wanted.empty()) {
    PELAB_ASSIGN_OR_RETURN(const v1::ListWorkersResponse page, reader.ListWorkers(request));
    for (const v1::WorkerRow& worker : page.workers()) {
      if (wanted.erase(worker.worker_id()) != 0) names[worker.worker_id()] = worker.name();
    }
    if (page.next().empty()) break;
    request.mutable_page()->set_after(page.next());
  }
  return names;
}

}  // namespace

Json JobJson(const v1::JobRow& row) {
  Json json = results::ToJson(row, "");
  json.erase("spec");
  return json;
}

struct Api::Route {
  std::string pattern;  // "/sweeps/{sweep}/jobs"
  std::set<std::string> parameters;
  Answer (Api::*answer)(const std::string& id, const Query& query);
};

const std::vector<Api::Route>& Api::Routes() {
  static const auto& routes = *new std::vector<Route>([] {
    const std::set<std::string> page = {"after", "limit"};
    const std::set<std::string> filters(kJobFilters.begin(), kJobFilters.end());
    const auto with = [&filters](std::set<std::string> more) {
      more.insert(filters.begin(), filters.end());
      return more;
    };
    return std::vector<Route>{
        {"/", {}, &Api::Index},
        {"/sweeps", page, &Api::Sweeps},
        {"/sweeps/{sweep}", {}, &Api::Sweep},
        {"/sweeps/{sweep}/jobs", with(page), &Api::Jobs},
        {"/sweeps/{sweep}/cells", with({"metric", "group_by"}), &Api::Cells},
        {"/sweeps/{sweep}/limits", with({}), &Api::Limits},
        {"/sweeps/{sweep}/curves", with({"metric", "group_by"}), &Api::MeanCurves},
        {"/sweeps/{sweep}/ablations", with({"metric", "group_by"}), &Api::MeanAblations},
        {"/sweeps/{sweep}/deposits", with({"group_by", "by_layer"}), &Api::Deposits},
        {"/sweeps/{sweep}/claims", {}, &Api::Claims},
        {"/sweeps/{sweep}/seeds", {"sheet", "claim"}, &Api::Seeds},
        {"/jobs/{job}", {"sweep"}, &Api::Job},
        {"/jobs/{job}/curve", page, &Api::Curve},
        {"/jobs/{job}/ablations", page, &Api::Ablations},
        {"/jobs/{job}/deposits", page, &Api::JobDeposits},
        {"/jobs/{job}/analyses", {"after", "limit", "name"}, &Api::Analyses},
        {"/jobs/{job}/log", {"attempt", "offset", "tail"}, &Api::Log},
        {"/workers", page, &Api::Workers},
        {"/demand", {"device", "memory_bytes", "pack"}, &Api::Demand},
    };
  }());
  return routes;
}

absl::StatusOr<Json> Api::Get(const Request& request) {
  for (const Route& route : Routes()) {
    const std::vector<std::string> pattern = SplitPath(route.pattern);
    if (pattern.size() != request.path.size()) continue;
    std::string id;
    bool matches = true;
    for (std::size_t i = 0; matches && i < pattern.size(); ++i) {
      const bool variable = pattern[i].front() == '{';
      matches = variable || pattern[i] == request.path[i];
      if (variable) id = request.path[i];
    }
    if (!matches) continue;
    PELAB_ASSIGN_OR_RETURN(const Query query, Query::Read(request, route.parameters));
    return (this->*route.answer)(id, query);
  }
  return absl::NotFoundError(
      Concat("there is no /api/v1/", Join(request.path, "/"), "; /api/v1/ lists what there is"));
}

absl::StatusOr<Json> Api::Index(const std::string&, const Query&) {
  Json paths = Json::array();
  for (const Route& route : Routes()) {
    paths.push_back({{"path", Concat("/api/v1", route.pattern)}, {"parameters", route.parameters}});
  }
  for (const char* other :
       {"/events", "/sweeps/{sweep}/events", "/jobs/{job}/events", "/session"}) {
    paths.push_back({{"path", Concat("/api/v1", other)}, {"parameters", Json::array()}});
  }
  return Json{{"pelab", PELAB_VERSION}, {"api", 1}, {"paths", std::move(paths)}};
}

absl::StatusOr<Json> Api::SweepRow(v1::Sweep sweep) {
  std::vector<Pace> paces;
  if (Live(sweep) && sweep.jobs().running() > 0) {
    PELAB_ASSIGN_OR_RETURN(
        paces, Paces(reader_, sweep.sweep_id(), absl::ToUnixMillis(sources_.clock.Wall())));
  }
  if (Live(sweep) && sweep.jobs().queued() > 0) {
    sweep.set_waiting_reason(sources_.waiting_reason(sweep.sweep_id()));
  }
  PELAB_ASSIGN_OR_RETURN(const std::uint64_t given_up, EpochsGivenUp(reader_, sweep));
  Json json = results::ToJson(sweep);
  json["progress"] = ProgressJson(sweep, given_up, paces);
  return json;
}

absl::StatusOr<Json> Api::Sweeps(const std::string&, const Query& query) {
  PELAB_ASSIGN_OR_RETURN(const std::int64_t limit, query.Number("limit", 100, 1, 1000));
  v1::ListSweepsRequest request;
  *request.mutable_page() = PageOf(query, limit);
  PELAB_ASSIGN_OR_RETURN(const v1::ListSweepsResponse page, reader_.ListSweeps(request));
  Json sweeps = Json::array();
  for (const v1::Sweep& sweep : page.sweeps()) {
    PELAB_ASSIGN_OR_RETURN(Json row, SweepRow(sweep));
    sweeps.push_back(std::move(row));
  }
  return Json{{"sweeps", std::move(sweeps)}, {"next", OrNull(page.next())}};
}

absl::StatusOr<Json> Api::Sweep(const std::string& id, const Query&) {
  PELAB_ASSIGN_OR_RETURN(const v1::Sweep sweep, reader_.GetSweep(id));
  PELAB_ASSIGN_OR_RETURN(Json json, SweepRow(sweep));
  json["document"] = sweep.document();
  Json overrides = Json::array();
  for (const v1::Override& override : sweep.overrides()) {
    overrides.push_back({{"field", override.field()}, {"value", override.value()}});
  }
  json["overrides"] = std::move(overrides);
  return json;
}

absl::StatusOr<Json> Api::Jobs(const std::string& id, const Query& query) {
  PELAB_ASSIGN_OR_RETURN(const std::int64_t limit,
                         query.Number("limit", db::kDefaultPage, 1, db::kMaxPage));
  v1::ListJobsRequest request;
  PELAB_ASSIGN_OR_RETURN(*request.mutable_filter(), ReadFilter(id, query));
  *request.mutable_page() = PageOf(query, limit);
  request.set_specs_apart(true);
  PELAB_ASSIGN_OR_RETURN(const v1::ListJobsResponse page, reader_.ListJobs(request));
  Json jobs = Json::array();
  for (const v1::JobRow& row : page.jobs()) jobs.push_back(JobJson(row));
  Json json = {{"jobs", std::move(jobs)}, {"next", OrNull(page.next())}};
  // A later page is empty only because the list has ended.
  if (query.has("after")) return json;
  PELAB_RETURN_IF_ERROR(NoteUnknownValues(reader_, request.filter(), json["jobs"].size(), json));
  return json;
}

absl::StatusOr<Json> Api::Job(const std::string& id, const Query& query) {
  v1::ListJobsRequest request;
  request.mutable_filter()->add_jobs(id);
  PELAB_ASSIGN_OR_RETURN(const v1::ListJobsResponse page, reader_.ListJobs(request));
  if (page.jobs_size() == 0) return absl::NotFoundError(Concat("no job ", id));
  const std::int64_t job_id = page.jobs(0).job_id();
  PELAB_ASSIGN_OR_RETURN(Json attempts, AttemptRows(job_id));
  PELAB_ASSIGN_OR_RETURN(const std::optional<v1::Sweep> sweep,
                         SweepOfJob(reader_, job_id, query.Text("sweep")));
  Json varying = Json::object();
  if (sweep) {
    PELAB_ASSIGN_OR_RETURN(varying, VaryingFields(reader_, sweep->sweep_id(), job_id));
  }
  return Json{{"job", results::ToJson(page.jobs(0), page.jobs(0).spec_json())},
              {"attempts", std::move(attempts)},
              {"sweep", sweep ? Json{{"sweep_id", sweep->sweep_id()}, {"name", sweep->name()}}
                              : Json(nullptr)},
              {"varying", std::move(varying)}};
}

absl::StatusOr<Json> Api::AttemptRows(std::int64_t job_id) {
  v1::JobFilter filter;
  filter.add_jobs(Concat(job_id));
  PELAB_ASSIGN_OR_RETURN(const auto attempts,
                         AllRows<v1::AttemptRow>(reader_, &db::Reader::ListAttempts, filter));
  PELAB_ASSIGN_OR_RETURN(auto names, NamesOfWorkers(reader_, attempts));
  Json rows = Json::array();
  for (const v1::AttemptRow& attempt : attempts) {
    Json row = results::ToJson(attempt);
    const auto name = names.find(attempt.worker());
    row["worker_name"] = name == names.end() ? Json(nullptr) : Json(name->second);
    rows.push_back(std::move(row));
  }
  return rows;
}

absl::StatusOr<Api::RowPage> Api::WorkerRows(const v1::Page& page) {
  v1::ListWorkersRequest request;
  *request.mutable_page() = page;
  PELAB_ASSIGN_OR_RETURN(v1::ListWorkersResponse rows, reader_.ListWorkers(request));
  const std::int64_t now = absl::ToUnixMillis(sources_.clock.Wall());
  const std::vector<sched::WorkerStatus> all = sources_.workers();
  sched::AddWorkerStatuses(all, sources_.clock.Wall(), rows);
  std::map<std::string, sched::WorkerStatus> statuses;
  for (const sched::WorkerStatus& status : all) statuses[status.worker_id] = status;
  Json workers = Json::array();
  for (const v1::WorkerRow& row : rows.workers()) {
    const auto found = statuses.find(row.worker_id());
    workers.push_back(WorkerJson(row, found == statuses.end() ? nullptr : &found->second, now));
  }
  return RowPage{std::move(workers), rows.next()};
}

absl::StatusOr<Json> Api::Workers(const std::string&, const Query& query) {
  PELAB_ASSIGN_OR_RETURN(const std::int64_t limit,
                         query.Number("limit", db::kDefaultPage, 1, db::kMaxPage));
  PELAB_ASSIGN_OR_RETURN(RowPage page, WorkerRows(PageOf(query, limit)));
  return Json{{"now_ms", absl::ToUnixMillis(sources_.clock.Wall())},
              {"workers", std::move(page.rows)},
              {"next", OrNull(page.next)}};
}

absl::StatusOr<Json> Api::Demand(const std::string&, const Query& query) {
  PELAB_ASSIGN_OR_RETURN(const std::string device, query.OneOf("device", {"gpu", "cpu"}));
  PELAB_ASSIGN_OR_RETURN(
      const std::int64_t memory,
      query.Number("memory_bytes", 0, 0, std::numeric_limits<std::int64_t>::max()));
  PELAB_ASSIGN_OR_RETURN(const std::int64_t pack, query.Number("pack", 1, 1, kMostPack));
  PELAB_ASSIGN_OR_RETURN(
      const sched::Scheduler::Demand demand,
      sources_.demand({.device_kind = device, .memory_bytes = static_cast<std::uint64_t>(memory)}));
  const auto waiting = static_cast<std::int64_t>(demand.waiting_jobs);
  const auto free = static_cast<std::int64_t>(demand.free_slots);
  return Json{{"waiting_jobs", waiting},
              {"free_slots", free},
              {"slots_wanted", std::max<std::int64_t>((waiting + pack - 1) / pack - free, 0)}};
}

}  // namespace pelab::http
