#include "core/base/status.h"

#include <CLI/CLI.hpp>

#include "client/claims/sheet_sweep.h"
#include "client/command/commands.h"
#include "client/limits.h"
#include "client/options/document.h"
#include "client/options/filter.h"
#include "client/source/connect.h"
#include "client/terminal/put.h"
#include "client/terminal/show.h"
#include "client/terminal/sweep_grid.h"
#include "client/terminal/table.h"
#include "client/terminal/watch.h"
#include "client/terminal/worker_names.h"
#include "core/base/strings.h"
#include "core/render/text.h"
#include "core/results/names.h"
#include "core/results/rows.h"
#include "core/results/varying.h"

namespace pelab::client {
namespace {

using Align = render::Column::Align;

struct StatusOptions {
  std::string sweep;
  bool watch = false;
};

std::string SweepStateText(const v1::Sweep& sweep) {
  return Concat(results::StateName(sweep.state()), sweep.paused() ? ", paused" : "");
}

std::string SucceededText(const v1::Sweep& sweep) {
  return Concat(sweep.jobs().succeeded(),
                sweep.diverged() == 0 ? "" : Concat(" (", sweep.diverged(), " diverged)"));
}

std::string SweepTable(const std::vector<v1::Sweep>& sweeps, const render::Style& style) {
  render::Table table({{"sweep", Align::kRight},
                       {"name", Align::kLeft, true},
                       {"state"},
                       {"waiting", Align::kRight},
                       {"running", Align::kRight},
                       {"succeeded", Align::kRight},
                       {"failed", Align::kRight},
                       {"cancelled", Align::kRight},
                       {"epochs", Align::kRight}});
  for (const v1::Sweep& s : sweeps) {
    table.AddRow({Concat(s.sweep_id()), s.name(), SweepStateText(s), Concat(s.jobs().queued()),
                  Concat(s.jobs().running() + s.jobs().assigned()), SucceededText(s),
                  Concat(s.jobs().failed()), Concat(s.jobs().cancelled()),
                  Concat(s.epochs_done(), "/", s.epochs_total())},
                 s.jobs().failed() > 0 ? "31" : "");
  }
  return table.Render(style);
}

// A table of the running jobs among `jobs`.
std::string RunningTable(const results::JobList& jobs, const render::Style& style) {
  const results::Varying varying(jobs);
  render::Table table({{"job", Align::kRight},
                       render::LabelColumn("running"),
                       {"epoch", Align::kRight},
                       {"test_accuracy", Align::kRight}});
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    const v1::JobRow& job = jobs.rows()[i];
    if (job.state() != v1::JOB_STATE_RUNNING) continue;
    const std::string mark = job.trained() ? "" : "~";
    table.AddRow({Concat(job.job_id()), JobLabel(job, varying.LabelOf(i)),
                  job.trained() ? "analyzing" : Concat(job.epochs_done(), "/", job.epochs()),
                  job.has_test_accuracy() ? mark + render::Fixed(job.test_accuracy(), 4) : "-"});
  }
  return table.empty() ? "" : Concat("\n", table.Render(style));
}

// One line about jobs that succeeded with a warning, for example that their weights were not kept.
std::string Warnings(const results::JobList& jobs, int width) {
  std::int64_t warned = 0;
  std::string first;
  for (const v1::JobRow& job : jobs.rows()) {
    if (!job.has_warning()) continue;
    if (warned++ == 0) first = Concat("job ", job.job_id(), ": ", render::Escape(job.warning()));
  }
  if (warned == 0) return "";
  const std::string more = warned > 1 ? Concat(" (and ", warned - 1, " more)") : "";
  return render::Wrap(Concat("warning: ", first, more, "; pelab jobs shows every warning"), width) +
         "\n";
}

// Warns about workers that hold jobs and have missed their heartbeat. Says nothing if the workers
// cannot be read.
std::string SilentWorkersText(DataSource& source) {
  std::string text;
  const auto workers = source.Workers();
  if (!workers.ok()) return text;
  for (const std::string& line : SilentWorkers(*workers)) text += render::Escape(line) + "\n";
  return text;
}

absl::StatusOr<int> ShowAll(const Context& context, DataSource& source) {
  PELAB_ASSIGN_OR_RETURN(const auto sweeps, source.Sweeps());
  const auto text = [&] {
    return Concat(sweeps.empty() ? "no sweeps\n" : SweepTable(sweeps, context.style),
                  SilentWorkersText(source), "from ", render::Escape(source.Description()), "\n");
  };
  return Put(context, {.json = [&] { return SweepsJson(source, sweeps); },
                       .text = text,
                       .rows = "sweeps",
                       .columns = results::ColumnsOf<v1::Sweep>()});
}

v1::JobFilter RunningOf(const v1::Sweep& sweep) {
  v1::JobFilter filter;
  filter.set_sweep(Concat(sweep.sweep_id()));
  filter.add_states(v1::JOB_STATE_RUNNING);
  return filter;
}

// Prints the sweep's grid, what computed it, and its running jobs; for a large sweep only the
// running jobs.
absl::Status PutJobsOf(const Context& context, DataSource& source, const v1::Sweep& sweep) {
  if (TotalOf(sweep.jobs()) > limits::kGridJobs) {
    PELAB_ASSIGN_OR_RETURN(const auto running, source.Jobs(RunningOf(sweep)));
    context.out(RunningTable(running, context.style));
    return absl::OkStatus();
  }
  SweepGrid looking(source, Concat(sweep.sweep_id()));
  PELAB_ASSIGN_OR_RETURN(const render::Grid grid, looking.Look());
  v1::JobFilter filter;
  filter.set_sweep(Concat(sweep.sweep_id()));
  PELAB_ASSIGN_OR_RETURN(const std::string computed_by,
                         ComputedByLine(context, source, filter, looking.jobs()));
  context.out(computed_by);
  context.out(Warnings(looking.jobs(), context.style.width));
  if (!grid.empty()) context.out("\n" + render::GridText(grid, context.style));
  context.out(RunningTable(looking.jobs(), context.style));
  return absl::OkStatus();
}

absl::StatusOr<int> ShowOne(const Context& context, DataSource& source, const std::string& name) {
  PELAB_ASSIGN_OR_RETURN(const v1::Sweep sweep, source.Sweep(name));
  if (context.output() != Output::kTable) {
    results::JobList running;
    if (context.output() == Output::kJson) {
      PELAB_ASSIGN_OR_RETURN(running, source.Jobs(RunningOf(sweep)));
    }
    const render::Json json = results::ToJson(sweep);
    const auto value = [&] {
      return render::Json{{"source", source.Description()},
                          {"sweep", json},
                          {"running", results::ToJsonArray(running)}};
    };
    return Put(context, {.json = value, .columns = results::ColumnsOf<v1::Sweep>(), .csv = [&] {
                           return render::Json::array({json});
                         }});
  }
  context.out(SweepTable({sweep}, context.style));
  const std::string submitted =
      Concat("submitted ", render::FormatTime(sweep.created_at_ms()), " from ",
             render::Escape(sweep.file_name()), ", protocol ", render::Escape(sweep.protocol()),
             "; found at the last submission: ", CountsText(sweep.counts()),
             sweep.priority() == 0 ? "" : Concat("; priority ", sweep.priority()),
             sweep.extensions().empty() ? ""
             : IsOfSheet(sweep)
                 ? Concat("; seeds from ", sweep.extensions_size(), " rounds of its claim sheet")
                 : Concat("; extended by seeds ", render::Escape(Join(sweep.extensions(), ","))));
  context.out(render::Wrap(submitted, context.style.width) + "\n");
  if (!sweep.note().empty()) {
    context.out(render::Wrap(Concat("note: ", render::Escape(sweep.note())), context.style.width) +
                "\n");
  }
  if (!sweep.waiting_reason().empty()) {
    context.out(Concat("waiting: ", render::Escape(sweep.waiting_reason()), "\n"));
  }
  context.out(SilentWorkersText(source));
  PELAB_RETURN_IF_ERROR(PutJobsOf(context, source, sweep));
  context.out(Concat("from ", render::Escape(source.Description()), "\n"));
  return kExitOk;
}

absl::StatusOr<int> Watch(const Context& context, const std::string& sweep) {
  if (sweep.empty()) return absl::InvalidArgumentError("--watch follows one sweep: name it");
  PELAB_ASSIGN_OR_RETURN(const bool served, IsServed(context.options));
  if (!served) {
    PELAB_ASSIGN_OR_RETURN(const auto source, FindSource(context.options));
    PELAB_ASSIGN_OR_RETURN(const v1::Sweep stored, source->Sweep(sweep));
    // Nothing is left to watch.
    if (stored.state() == v1::SWEEP_STATE_FINISHED) return ShowOne(context, *source, sweep);
  }
  PELAB_ASSIGN_OR_RETURN(auto coordinator, FindCoordinator(context.options));
  PELAB_ASSIGN_OR_RETURN(const v1::Sweep end, WatchToEnd(context, *coordinator, sweep, nullptr,
                                                         context.output() == Output::kJson));
  if (context.output() == Output::kTable) context.out(EndText(end) + "\n");
  return ExitCodeOf(end);
}

absl::StatusOr<int> Run(const Context& context, const StatusOptions& options) {
  if (options.watch) return Watch(context, options.sweep);
  PELAB_ASSIGN_OR_RETURN(auto source, FindSource(context.options));
  return options.sweep.empty() ? ShowAll(context, *source)
                               : ShowOne(context, *source, options.sweep);
}

}  // namespace

void AddStatus(Commands& commands) {
  auto options = std::make_shared<StatusOptions>();
  CLI::App* app = AddCommand(commands, "status", "the sweeps and how far they are; why jobs wait",
                             "  pelab status\n"
                             "  pelab status quick\n"
                             "  pelab status quick --watch");
  app->add_option("SWEEP", options->sweep, "number or name of a sweep [default: all]");
  app->add_flag("--watch", options->watch, "stay and show progress until every job has ended");
  app->callback([&commands, options] {
    commands.chosen = [&commands, options] { return Run(*commands.context, *options); };
  });
}

}  // namespace pelab::client
