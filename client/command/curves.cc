#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdint>
#include <string>
#include <unordered_set>

#include "client/command/commands.h"
#include "client/command/where_option.h"
#include "client/figure/paper.h"
#include "client/options/outputs.h"
#include "client/source/connect.h"
#include "client/terminal/result_tables.h"
#include "client/terminal/row_stream.h"
#include "client/terminal/show.h"
#include "client/terminal/unknown_values.h"
#include "core/base/status.h"
#include "core/base/strings.h"
#include "core/results/rows.h"

namespace pelab::client {
namespace {

struct CurvesOptions {
  std::string target;
  std::string sweep;
  std::string where;
  std::string metric = "test_accuracy";
  PaperOptions paper;
};

// Writes the curve rows. A JSON value contains only rows of the jobs that it lists, since jobs may
// have been added after they were read.
absl::StatusOr<int> PutRows(const Context& context, DataSource& source,
                            const v1::JobFilter& filter) {
  render::Json value;
  std::unordered_set<std::int64_t> known;
  const bool json = context.output() == Output::kJson && !context.options.json_lines();
  if (json) {
    PELAB_ASSIGN_OR_RETURN(const results::JobList jobs, source.Jobs(filter));
    PELAB_RETURN_IF_ERROR(NoteUnknownValues(context, source, filter, jobs.size()));
    for (const v1::JobRow& job : jobs) known.insert(job.job_id());
    value = {{"jobs", results::ToJsonArray(jobs)}, {"curves", render::Json::array()}};
  }
  RowStream stream(context, value, results::ColumnsOf<v1::CurveRow>());
  value = {};
  void (*const append)(const v1::CurveRow&, std::string&) =
      stream.form() == RowStream::Form::kCsv    ? results::AppendCsv
      : stream.form() == RowStream::Form::kJson ? results::AppendJson
                                                : results::AppendJsonLine;
  return stream.Finish(source.ReadCurves(filter, [&](const auto& page) {
    for (const v1::CurveRow& row : page) {
      if (!json || known.contains(row.job_id())) stream.Add(row, append);
    }
    return stream.EndPage();
  }));
}

absl::Status PutForPaper(const Context& context, const CurvesOptions& options, const Target& target,
                         const results::CellTable& cells, const results::MeanCurves& means) {
  const std::vector<results::MeanCurve> curves = means.Curves();
  const Paper paper = *PaperOf(context.options.output_name);
  if (paper == Paper::kMarkdown) {
    const PaperTable table = CurvesTable(cells, curves, target.title, options.metric);
    return PutPaper(context, options.paper, ToMarkdown(table));
  }
  const LineFigure figure = CurvesFigure(cells, curves, target.title, options.metric);
  if (figure.panels.empty()) {
    return absl::FailedPreconditionError(Concat(target.title, " has no finished epoch yet"));
  }
  if (paper == Paper::kLatex) return PutPaper(context, options.paper, LinesAsPgfplots(figure));
  return PutPaper(context, options.paper,
                  DrawLines(figure, paper == Paper::kSvg ? Vector::kSvg : Vector::kPdf));
}

absl::StatusOr<int> Plot(const Context& context, DataSource& source, const Target& target,
                         const CurvesOptions& options) {
  PELAB_ASSIGN_OR_RETURN(const auto jobs, source.Jobs(target.filter));
  PELAB_RETURN_IF_ERROR(NoteUnknownValues(context, source, target.filter, jobs.size()));
  PELAB_ASSIGN_OR_RETURN(results::CellTable cells, results::BuildCells(jobs, "test_accuracy", {}));
  if (!target.is_sweep) results::OneSeedEach(cells);
  results::MeanCurves means(cells, options.metric);
  PELAB_RETURN_IF_ERROR(source.ReadCurves(target.filter, [&](const auto& page) {
    means.Add(page);
    return absl::OkStatus();
  }));
  if (PaperOf(context.options.output_name)) {
    PELAB_RETURN_IF_ERROR(PutForPaper(context, options, target, cells, means));
    return kExitOk;
  }
  const std::vector<render::Series> series = CurveSeries(cells, means.Curves());
  if (series.empty()) {
    context.out(Concat(target.title, " has no finished epoch yet\n"));
  } else {
    context.out(render::LinePlot(series, {Concat(target.title, ": ", options.metric), "epoch"},
                                 context.style));
  }
  return kExitOk;
}

absl::StatusOr<int> Run(const Context& context, const CurvesOptions& options) {
  const std::vector<std::string>& metrics = results::CurveMetrics();
  if (std::find(metrics.begin(), metrics.end(), options.metric) == metrics.end()) {
    return absl::InvalidArgumentError(
        Concat("--metric: unknown metric \"", options.metric, "\"; known: ", Join(metrics, ", ")));
  }
  PELAB_RETURN_IF_ERROR(CheckPaper(context, options.paper));
  PELAB_RETURN_IF_ERROR(CheckTargetNames(options.target, options.sweep, options.where));
  PELAB_ASSIGN_OR_RETURN(const auto source, FindSource(context.options));
  PELAB_ASSIGN_OR_RETURN(const Target target,
                         FindTarget(*source, options.target, options.sweep, options.where));
  switch (context.output()) {
    case Output::kCsv:
    case Output::kJson:
      return PutRows(context, *source, target.filter);
    case Output::kTable:
      return Plot(context, *source, target, options);
  }
  return absl::InternalError("no such output");
}

}  // namespace

void AddCurves(Commands& commands) {
  auto options = std::make_shared<CurvesOptions>();
  CLI::App* app =
      AddCommand(commands, "curves", "accuracy and loss over epochs, seeds as their mean",
                 "  pelab curves quick\n"
                 "  pelab curves 12 --metric train_loss\n"
                 "  pelab curves quick --where 'pe in (rope, mla) and seed=0'\n"
                 "  pelab curves --sweep 3 --output csv > curves.csv\n"
                 "  pelab curves quick --output pdf --out curves.pdf");
  app->add_option("JOB|SWEEP", options->target, "a job's number or key prefix, or a sweep's name");
  app->add_option("--sweep", options->sweep,
                  "a sweep by its number or name, in place of JOB|SWEEP");
  AddWhere(app, options->where);
  app->add_option(
      "--metric", options->metric,
      "what to plot: test_accuracy, train_accuracy, train_eval_accuracy, test_loss, train_loss or "
      "learning_rate [default: test_accuracy]; json and csv carry all");
  AddPaperOptions(app, options->paper);
  app->callback([&commands, options] {
    commands.chosen = [&commands, options] { return Run(*commands.context, *options); };
  });
}

}  // namespace pelab::client
