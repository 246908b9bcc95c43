#include "client/terminal/show.h"

#include <algorithm>
#include <utility>

#include "client/limits.h"
#include "client/options/filter.h"
#include "client/terminal/row_stream.h"
#include "client/terminal/unknown_values.h"
#include "core/base/status.h"
#include "core/base/strings.h"
#include "core/catalog/catalog.h"
#include "core/render/text.h"
#include "core/results/computed_by.h"
#include "core/results/names.h"
#include "core/results/rows.h"

namespace pelab::client {

absl::Status CheckTargetNames(const std::string& name, const std::string& sweep,
                              const std::string& where) {
  if (name.empty() != sweep.empty()) return absl::OkStatus();
  if (name.empty() && !where.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      "name one job or one sweep: a job's number, a sweep's name, or --sweep");
}

absl::StatusOr<Target> FindTarget(DataSource& source, const std::string& name,
                                  const std::string& sweep, const std::string& where) {
  Target target;
  target.filter.set_where(where);
  const std::string condition = where.empty() ? "" : Concat(" where ", render::Escape(where));
  if (name.empty() && sweep.empty()) {
    target.is_sweep = true;
    target.title = Concat("the selection", condition);
    return target;
  }
  const bool number = !name.empty() && name.find_first_not_of("0123456789") == std::string::npos;
  std::string no_sweep;
  if (!number) {  // A number is a job. Any other text is first a sweep's name, then a key prefix.
    absl::StatusOr<v1::Sweep> found = source.Sweep(sweep.empty() ? name : sweep);
    if (found.ok()) {
      target.filter.set_sweep(Concat(found->sweep_id()));
      target.is_sweep = true;
      target.title = Concat("sweep ", render::Escape(found->name()), condition);
      return target;
    }
    if (found.status().code() != absl::StatusCode::kNotFound || !sweep.empty()) {
      return found.status();
    }
    no_sweep = std::string(found.status().message());
  }
  absl::StatusOr<v1::JobRow> job = FindJob(source, name);
  if (!job.ok() && job.status().code() == absl::StatusCode::kInvalidArgument && !number) {
    constexpr std::string_view kNoSweep = "no sweep ";
    const bool is_said = no_sweep.starts_with(kNoSweep);  // with the sweeps that there are
    return absl::NotFoundError(Concat("no sweep and no job ", is_said
                                                                  ? no_sweep.substr(kNoSweep.size())
                                                                  : Concat("\"", name, "\"")));
  }
  if (!job.ok()) return job.status();
  target.filter.add_jobs(Concat(job->job_id()));
  target.title = Concat("job ", job->job_id(), condition);
  return target;
}

absl::StatusOr<v1::JobRow> FindJob(DataSource& source, const std::string& job) {
  v1::JobFilter filter;
  filter.add_jobs(job);
  absl::StatusOr<results::JobList> jobs = source.Jobs(filter);
  if (!jobs.ok()) return jobs.status();
  if (jobs->empty()) return absl::NotFoundError(Concat("no job ", job));
  return jobs->rows().front();
}

absl::Status CheckAnalysisName(const std::string& flag, const std::string& name) {
  if (catalog::FindAnalysis(name) != nullptr) return absl::OkStatus();
  std::vector<std::string_view> known;
  for (const catalog::Entry& entry : catalog::Analyses()) known.push_back(entry.name);
  const std::string_view near = catalog::DidYouMean(name, known);
  return absl::InvalidArgumentError(Concat(flag, ": unknown analysis \"", name, "\"",
                                           near.empty() ? "" : "; did you mean ", near,
                                           "; known: ", Join(known, ", ")));
}

std::string JobLabel(const v1::JobRow& job, const std::string& varying) {
  return Concat(job.pe_label(), " ", job.task(), " seed ", job.seed(), varying.empty() ? "" : " ",
                varying);
}

absl::StatusOr<std::string> ComputedByLine(const Context& context, DataSource& source,
                                           const v1::JobFilter& filter,
                                           const results::JobList& jobs) {
  if (jobs.empty() || jobs.size() > limits::kComputedByJobs) return "";
  PELAB_ASSIGN_OR_RETURN(const auto attempts, source.Attempts(filter));
  const std::string text = results::ComputedByText(jobs, attempts);
  if (text.empty()) return "";
  return Concat(render::Wrap(Concat("computed by ", text), context.style.width), "\n");
}

std::string StateText(const v1::JobRow& job) {
  if (job.diverged() && job.state() == v1::JOB_STATE_SUCCEEDED) return "diverged";
  const std::string state = results::StateName(job.state());
  return job.trained() && job.state() != v1::JOB_STATE_SUCCEEDED ? state + " (analysis)" : state;
}

std::uint64_t TotalOf(const v1::StateCounts& jobs) {
  return jobs.queued() + jobs.assigned() + jobs.running() + jobs.succeeded() + jobs.failed() +
         jobs.cancelled();
}

render::Json SweepsJson(const DataSource& source, const std::vector<v1::Sweep>& sweeps) {
  return {{"source", source.Description()}, {"sweeps", results::ToJsonArray(sweeps)}};
}

absl::StatusOr<int> PutJobs(const Context& context, DataSource& source,
                            const v1::JobFilter& filter) {
  RowStream stream(context, {{"jobs", render::Json::array()}}, results::ColumnsOf<v1::JobRow>());
  std::size_t count = 0;
  const auto on_page = [&](v1::ListJobsResponse& page) {
    results::JobList jobs;
    jobs.Add(std::move(page));
    count += jobs.size();
    for (const v1::JobRow& job : jobs) {
      if (stream.form() == RowStream::Form::kCsv) {
        stream.Add(job, [&](const v1::JobRow& row, std::string& text) {
          results::AppendJobCsv(row, jobs.SpecOf(row), text);
        });
      } else {
        stream.Add(results::ToJson(job, jobs.SpecOf(job)));
      }
    }
    return stream.EndPage();
  };
  PELAB_ASSIGN_OR_RETURN(const int code, stream.Finish(source.ReadJobs(filter, on_page)));
  PELAB_RETURN_IF_ERROR(NoteUnknownValues(context, source, filter, count));
  return code;
}

}  // namespace pelab::client
