#include "client/terminal/run_report.h"

#include <algorithm>

#include "client/terminal/ablation_maps.h"
#include "client/terminal/put.h"
#include "client/terminal/result_tables.h"
#include "client/terminal/show.h"
#include "client/terminal/watch.h"
#include "core/base/status.h"
#include "core/base/strings.h"
#include "core/experiment/sweep_name.h"
#include "core/render/text.h"
#include "core/results/rows.h"

namespace pelab::client {
namespace {

// The commands that show the sweep again. They use the sweep's number if another sweep has taken
// its name, or if a shell might not read the name as one word. Commands that accept a job or a
// sweep read a number as a job's, so these get --sweep.
std::string Again(const Context& context, const v1::Sweep& sweep, bool by_name) {
  const bool default_db = !context.options.database_given;
  const std::string where = default_db ? "" : Concat(" --db ", context.options.database);
  const std::string number = Concat(sweep.sweep_id());
  std::string text = "\nto show these results again:\n  pelab results ";
  text += Concat(by_name ? sweep.name() : number, where, "\n");
  for (const char* command : {"curves", "ablation", "deposits"}) {
    text +=
        Concat("  pelab ", command, " ", by_name ? sweep.name() : "--sweep " + number, where, "\n");
  }
  return text;
}

}  // namespace

namespace {

// Why jobs failed: the first few, and where the others are.
std::string FailuresText(const results::JobList& jobs, const v1::Sweep& sweep) {
  constexpr std::size_t kShown = 5;
  std::string text;
  std::size_t failed = 0;
  for (const v1::JobRow& job : jobs.rows()) {
    if (job.state() != v1::JOB_STATE_FAILED || ++failed > kShown) continue;
    text += Concat("job ", job.job_id(), " (", render::Escape(JobLabel(job)),
                   "): ", render::Escape(job.error()), "\n");
  }
  if (failed > kShown) {
    text +=
        Concat("and ", failed - kShown, " more: pelab jobs ", sweep.name(), " --state failed\n");
  }
  return text;
}

}  // namespace

absl::Status ReportRun(const Context& context, DataSource& source, const v1::Sweep& sweep) {
  v1::JobFilter filter;
  filter.set_sweep(Concat(sweep.sweep_id()));
  PELAB_ASSIGN_OR_RETURN(const auto jobs, source.Jobs(filter));
  PELAB_ASSIGN_OR_RETURN(const results::CellTable cells,
                         results::BuildCells(jobs, "test_accuracy", {}));
  render::Json groups = render::Json::array();
  for (const results::Cell& cell : cells.cells) groups.push_back(results::ToJson(cells, cell));
  if (context.output() != Output::kTable) {
    const auto json = [&] {
      return render::Json{{"sweep", results::ToJson(sweep)},
                          {"groups", groups},
                          {"jobs", results::ToJsonArray(jobs)}};
    };
    Put(context,
        {.json = json, .columns = results::CellColumns(cells), .csv = [&] { return groups; }});
    return absl::OkStatus();
  }
  context.out(EndText(sweep) + "\n" + FailuresText(jobs, sweep));
  if (jobs.empty()) return absl::OkStatus();
  context.out("\n" + CellTableText(cells, context.style));
  results::MeanCurves means(cells, "test_accuracy");
  PELAB_RETURN_IF_ERROR(source.ReadCurves(filter, [&](const auto& page) {
    means.Add(page);
    return absl::OkStatus();
  }));
  const std::vector<render::Series> series = CurveSeries(cells, means.Curves());
  if (!series.empty()) {
    context.out("\n" + render::LinePlot(series, {"test accuracy", "epoch"}, context.style));
  }
  PELAB_ASSIGN_OR_RETURN(const auto heads, source.HeadAblations(filter));
  PELAB_ASSIGN_OR_RETURN(const auto analyses, source.Analyses(filter, "head_ablation"));
  const std::vector<AblationMap> maps = AblationMaps(cells, heads, results::VariantsOf(analyses),
                                                     results::AblationMetric::kAccuracyDrop);
  const auto strongest = std::max_element(
      maps.begin(), maps.end(),
      [](const AblationMap& a, const AblationMap& b) { return a.strongest < b.strongest; });
  if (strongest != maps.end()) {
    context.out(Concat("\n", AblationMapText(*strongest, context.style),
                       AblationNotes({*strongest}, context.style)));
  }
  PELAB_ASSIGN_OR_RETURN(const v1::Sweep named, source.Sweep(sweep.name()));
  context.out(Again(context, sweep,
                    named.sweep_id() == sweep.sweep_id() && experiment::IsSweepName(sweep.name())));
  return absl::OkStatus();
}

}  // namespace pelab::client
