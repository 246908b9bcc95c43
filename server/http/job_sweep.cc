#include "server/http/job_sweep.h"

#include "core/base/status.h"
#include "core/base/strings.h"
#include "core/results/fields.h"
#include "core/results/job_list.h"
#include "server/http/lists.h"

namespace pelab::http {
namespace {

constexpr int kLookedAt = 100;  // number of sweeps

absl::StatusOr<bool> Has(db::Reader& reader, std::int64_t sweep_id, std::int64_t job_id) {
  v1::ListJobsRequest request;
  request.mutable_filter()->set_sweep(Concat(sweep_id));
  request.mutable_filter()->add_jobs(Concat(job_id));
  request.set_specs_apart(true);
  PELAB_ASSIGN_OR_RETURN(const v1::ListJobsResponse jobs, reader.ListJobs(request));
  return jobs.jobs_size() > 0;
}

}  // namespace

absl::StatusOr<std::optional<v1::Sweep>> SweepOfJob(db::Reader& reader, std::int64_t job_id,
                                                    const std::string& named) {
  if (!named.empty()) {
    PELAB_ASSIGN_OR_RETURN(v1::Sweep sweep, reader.GetSweepRow(named));
    return sweep;
  }
  v1::ListSweepsRequest newest;
  newest.mutable_page()->set_limit(kLookedAt);
  PELAB_ASSIGN_OR_RETURN(const v1::ListSweepsResponse sweeps, reader.ListSweeps(newest));
  for (const v1::Sweep& sweep : sweeps.sweeps()) {
    PELAB_ASSIGN_OR_RETURN(const bool has, Has(reader, sweep.sweep_id(), job_id));
    if (has) return sweep;
  }
  return std::nullopt;
}

absl::StatusOr<render::Json> VaryingFields(db::Reader& reader, std::int64_t sweep_id,
                                           std::int64_t job_id) {
  render::Json varying = render::Json::object();
  v1::JobFilter filter;
  filter.set_sweep(Concat(sweep_id));
  const auto jobs = AllJobs(reader, filter);
  if (absl::IsInvalidArgument(jobs.status())) return varying;  // more than kMostJobs
  if (!jobs.ok()) return jobs.status();
  const results::FieldTable table(*jobs);
  for (std::size_t i = 0; i < jobs->size(); ++i) {
    if (jobs->rows()[i].job_id() != job_id) continue;
    for (const std::string& name : results::TellingColumns(table.distinct())) {
      if (name != "pe" && name != "task") varying[name] = results::ValueOf(table.Of(i), name);
    }
  }
  return varying;
}

}  // namespace pelab::http
