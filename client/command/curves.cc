#include <CLI/CLI.hpp>
#include <algorithm>

#include "client/command/commands.h"
#include "client/command/show.h"
#include "client/connect.h"
#include "client/report/pictures.h"
#include "client/rows.h"
#include "core/base/status.h"
#include "core/views/text.h"

namespace pelab::client {
namespace {

struct Options {
  std::string target;
  std::string sweep;
  std::string metric = "test_accuracy";
};

absl::StatusOr<int> Run(const Context& context, const Options& options) {
  const std::vector<std::string>& metrics = CurveMetrics();
  if (std::find(metrics.begin(), metrics.end(), options.metric) == metrics.end()) {
    return absl::InvalidArgumentError(
        Concat("--metric: unknown metric \"", options.metric, "\"; known: ", Join(metrics, ", ")));
  }
  PELAB_RETURN_IF_ERROR(CheckTargetNames(options.target, options.sweep));
  auto source = FindSource(context.options);
  if (!source.ok()) return source.status();
  auto target = FindTarget(**source, options.target, options.sweep);
  if (!target.ok()) return target.status();
  auto rows = (*source)->Curves(target->filter);
  if (!rows.ok()) return rows.status();
  if (context.output() == Output::kCsv) {
    PutCsv(context, kCurveColumns, ToJsonArray(*rows));
    return kExitOk;
  }
  auto jobs = (*source)->Jobs(target->filter);
  if (!jobs.ok()) return jobs.status();
  if (context.output() == Output::kJson) {
    PutJson(context, {{"jobs", ToJsonArray(*jobs)}, {"curves", ToJsonArray(*rows)}});
    return kExitOk;
  }
  auto cells = BuildCells(*jobs, "test_accuracy", {});
  if (!cells.ok()) return cells.status();
  if (!target->is_sweep) OneSeedEach(*cells);
  const std::vector<render::Series> series = MeanCurves(*cells, *rows, options.metric);
  if (series.empty()) {
    context.out(Concat(target->title, " has no finished epoch yet\n"));
  } else {
    context.out(render::LinePlot(series, {Concat(target->title, ": ", options.metric), "epoch"},
                                 context.style));
  }
  return kExitOk;
}

}  // namespace

void AddCurves(Commands& commands) {
  auto options = std::make_shared<Options>();
  CLI::App* app =
      AddCommand(commands, "curves", "accuracy and loss over epochs, seeds as their mean",
                 "  pelab curves quick\n"
                 "  pelab curves 12 --metric train_loss\n"
                 "  pelab curves --sweep 3 --output csv > curves.csv");
  app->add_option("JOB|SWEEP", options->target, "a job's number or key prefix, or a sweep's name");
  app->add_option("--sweep", options->sweep,
                  "a sweep by its number or name, in place of JOB|SWEEP");
  app->add_option(
      "--metric", options->metric,
      "what to plot: test_accuracy, train_accuracy, test_loss, train_loss or learning_rate "
      "[default: test_accuracy]; json and csv carry all");
  app->callback([&commands, options] {
    commands.chosen = [&commands, options] { return Run(*commands.context, *options); };
  });
}

}  // namespace pelab::client
