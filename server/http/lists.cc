#include "server/http/lists.h"

#include "core/base/status.h"
#include "core/base/strings.h"
#include "core/db/read/where.h"
#include "core/experiment/sweep.h"
#include "core/results/names.h"

namespace pelab::http {
namespace {

constexpr v1::JobState kStates[] = {v1::JOB_STATE_QUEUED,  v1::JOB_STATE_ASSIGNED,
                                    v1::JOB_STATE_RUNNING, v1::JOB_STATE_SUCCEEDED,
                                    v1::JOB_STATE_FAILED,  v1::JOB_STATE_CANCELLED};

absl::Status AddState(const std::string& name, v1::JobFilter& filter) {
  std::vector<std::string> known;
  for (const v1::JobState state : kStates) {
    known.push_back(results::StateName(state));
    if (known.back() != name) continue;
    filter.add_states(state);
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      Concat("unknown state \"", name, "\"; known: ", Join(known, ", ")));
}

}  // namespace

const std::vector<std::string> kJobFilters = {"state",    "pe",   "pe_label", "task",
                                              "protocol", "seed", "job",      "where"};

absl::StatusOr<v1::JobFilter> ReadFilter(const std::string& sweep, const Query& query) {
  v1::JobFilter filter;
  filter.set_sweep(sweep);
  PELAB_ASSIGN_OR_RETURN(const auto states, query.List("state"));
  for (const std::string& state : states) PELAB_RETURN_IF_ERROR(AddState(state, filter));
  PELAB_ASSIGN_OR_RETURN(const auto jobs, query.List("job"));
  for (const std::string& job : jobs) filter.add_jobs(job);
  std::vector<std::string> conditions;
  for (const std::string field : {"pe", "pe_label", "task", "protocol"}) {
    if (query.has(field)) conditions.push_back(db::WhereOne({field, query.Text(field)}));
  }
  if (query.has("seed")) {
    PELAB_ASSIGN_OR_RETURN(const std::int64_t seed,
                           query.Number("seed", 0, 0, experiment::kMaxSeed));
    conditions.push_back(db::WhereOne({"seed", Concat(seed)}));
  }
  if (query.has("where")) {
    const std::string where = query.Text("where");
    // Checked alone, so that columns in error messages are right.
    const auto fields = db::FieldsOfWhere(where);
    if (!fields.ok()) {
      return absl::InvalidArgumentError(Concat("where: ", std::string(fields.status().message())));
    }
    if (!fields->empty()) conditions.push_back(Concat("(", where, ")"));
  }
  filter.set_where(Join(conditions, " and "));
  return filter;
}

absl::StatusOr<results::JobList> AllJobs(db::Reader& reader, const v1::JobFilter& filter) {
  results::JobList jobs;
  v1::ListJobsRequest request;
  *request.mutable_filter() = filter;
  request.set_specs_apart(true);
  request.mutable_page()->set_limit(db::kMaxPage);
  do {
    PELAB_ASSIGN_OR_RETURN(v1::ListJobsResponse page, reader.ListJobs(request));
    request.mutable_page()->set_after(page.next());
    jobs.Add(std::move(page));
    if (jobs.size() > kMostJobs) {
      return absl::InvalidArgumentError(Concat(
          "these are more than ", kMostJobs,
          " jobs; put together are at most so many: narrow them by ", Join(kJobFilters, ", ")));
    }
  } while (!request.page().after().empty());
  return jobs;
}

}  // namespace pelab::http
