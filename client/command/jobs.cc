#include <CLI/CLI.hpp>
#include <algorithm>
#include <utility>
#include <vector>

#include "client/command/commands.h"
#include "client/command/where_option.h"
#include "client/options/filter.h"
#include "client/source/connect.h"
#include "client/terminal/show.h"
#include "client/terminal/table.h"
#include "client/terminal/unknown_values.h"
#include "client/terminal/varying_columns.h"
#include "core/base/status.h"
#include "core/base/strings.h"
#include "core/render/text.h"

namespace pelab::client {
namespace {

using Align = render::Column::Align;

struct JobsOptions {
  std::string sweep;
  std::string state;
  std::string where;
};

// The job's error, or its warning if it succeeded, for example that its weights were not kept.
std::string ErrorText(const v1::JobRow& job) {
  if (job.has_error() || !job.has_warning()) return job.error();
  return Concat("warning: ", job.warning());
}

std::string JobTable(const results::JobList& jobs, const render::Style& style) {
  const VaryingColumns varying(jobs);
  std::vector<render::Column> columns = {
      {"job", Align::kRight}, {"key"}, render::LabelColumn("pe"), render::LabelColumn("task")};
  varying.AddTo(columns);
  columns.insert(columns.end(), {{"seed", Align::kRight},
                                 {"state"},
                                 {"epochs", Align::kRight},
                                 {"attempts", Align::kRight},
                                 {"error", Align::kLeft, true}});
  render::Table table(columns);
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    const v1::JobRow& job = jobs.rows()[i];
    std::vector<std::string> cells = {Concat(job.job_id()), job.key().substr(0, 8), job.pe_label(),
                                      job.task()};
    varying.AddCells(i, cells);
    cells.insert(cells.end(),
                 {Concat(job.seed()), StateText(job), Concat(job.epochs_done(), "/", job.epochs()),
                  Concat(job.attempts()), ErrorText(job)});
    table.AddRow(std::move(cells), job.state() == v1::JOB_STATE_FAILED ? "31"
                                   : job.diverged()                    ? "33"
                                                                       : "");
  }
  const bool diverged =
      std::any_of(jobs.begin(), jobs.end(), [](const auto& job) { return job.diverged(); });
  return table.Render(style) +
         (diverged ? "diverged: succeeded, with final losses above that of guessing\n" : "");
}

absl::StatusOr<int> Run(const Context& context, const JobsOptions& options) {
  v1::JobFilter filter;
  filter.set_sweep(options.sweep);
  filter.set_where(options.where);
  if (!options.state.empty()) {
    auto states = ParseStates(options.state);
    if (!states.ok()) return states.status();
    for (const v1::JobState state : *states) filter.add_states(state);
  }
  auto source = FindSource(context.options);
  if (!source.ok()) return source.status();
  if (context.output() != Output::kTable) return PutJobs(context, **source, filter);
  auto jobs = (*source)->Jobs(filter);
  if (!jobs.ok()) return jobs.status();
  const auto computed_by = ComputedByLine(context, **source, filter, *jobs);
  if (!computed_by.ok()) return computed_by.status();
  PELAB_RETURN_IF_ERROR(NoteUnknownValues(context, **source, filter, jobs->size()));
  context.out(jobs->empty() ? "no jobs\n" : JobTable(*jobs, context.style));
  context.out(*computed_by);
  return kExitOk;
}

}  // namespace

void AddJobs(Commands& commands) {
  auto options = std::make_shared<JobsOptions>();
  CLI::App* app = AddCommand(commands, "jobs", "the jobs of a sweep, their states and errors",
                             "  pelab jobs quick\n"
                             "  pelab jobs quick --state failed\n"
                             "  pelab jobs --where 'seed=0,pe!=nope' --output csv");
  app->add_option("SWEEP", options->sweep,
                  "number or name of a sweep [default: all jobs of the database]");
  app->add_option("--state", options->state,
                  "queued, assigned, running, succeeded, failed, cancelled or open; separate "
                  "several with commas "
                  "[default: all]");
  AddWhere(app, options->where);
  app->callback([&commands, options] {
    commands.chosen = [&commands, options] { return Run(*commands.context, *options); };
  });
}

}  // namespace pelab::client
