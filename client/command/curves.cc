#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdint>
#include <string_view>
#include <unordered_set>

#include "client/command/commands.h"
#include "client/command/show.h"
#include "client/connect.h"
#include "client/errors.h"
#include "client/report/pictures.h"
#include "core/base/status.h"
#include "core/results/rows.h"
#include "core/views/text.h"

namespace pelab::client {
namespace {

struct Options {
  std::string target;
  std::string sweep;
  std::string metric = "test_accuracy";
};

// Rows go out page by page: where reading breaks off, what is out stays, and the error follows.
absl::StatusOr<int> PutRowsCsv(const Context& context, DataSource& source,
                               const v1::JobFilter& filter) {
  std::string text =
      render::ToCsv(results::kCurveColumns, render::Json::array());  // the line of names
  PELAB_RETURN_IF_ERROR(source.ReadCurves(filter, [&](const auto& page) {
    for (const v1::CurveRow& row : page) results::AppendCsv(row, text);
    context.out(text);
    text.clear();
    return absl::OkStatus();
  }));
  return kExitOk;
}

absl::StatusOr<int> PutRowLines(const Context& context, DataSource& source,
                                const v1::JobFilter& filter) {
  PELAB_RETURN_IF_ERROR(source.ReadCurves(filter, [&](const auto& page) {
    std::string text;
    for (const v1::CurveRow& row : page) results::AppendJsonLine(row, text);
    context.out(text);
    return absl::OkStatus();
  }));
  return kExitOk;
}

// {"jobs": […], "curves": […]} with the rows of these jobs alone: others may have come since they
// were read. An error that comes when rows are out becomes a last member, "error".
absl::StatusOr<int> PutRowsJson(const Context& context, DataSource& source,
                                const v1::JobFilter& filter) {
  auto jobs = source.Jobs(filter);
  if (!jobs.ok()) return jobs.status();
  std::unordered_set<std::int64_t> known;
  for (const v1::JobRow& job : *jobs) known.insert(job.job_id());
  constexpr std::string_view kNoRows = "[]\n}\n";
  std::string text =
      render::ToJson({{"jobs", results::ToJsonArray(*jobs)}, {"curves", render::Json::array()}});
  jobs = results::JobList();
  const absl::Status status =
      source.ReadCurves(filter, [&, first = true](const auto& page) mutable {
        for (const v1::CurveRow& row : page) {
          if (!known.contains(row.job_id())) continue;
          if (first) text.resize(text.size() - kNoRows.size());
          text += first ? "[\n" : ",\n";
          first = false;
          results::AppendJson(row, text);
        }
        if (!first) {
          context.out(text);
          text.clear();
        }
        return absl::OkStatus();
      });
  const bool begun = text.empty();
  if (!status.ok() && !begun) return status;
  if (!status.ok()) {
    context.out("\n  ],\n" + ErrorMember(status));
    return ExitCodeOf(status);
  }
  context.out(begun ? "\n  ]\n}\n" : text);
  return kExitOk;
}

absl::StatusOr<int> Plot(const Context& context, DataSource& source, const Target& target,
                         const std::string& metric) {
  PELAB_ASSIGN_OR_RETURN(const auto jobs, source.Jobs(target.filter));
  PELAB_ASSIGN_OR_RETURN(results::CellTable cells, results::BuildCells(jobs, "test_accuracy", {}));
  if (!target.is_sweep) results::OneSeedEach(cells);
  results::MeanCurves means(cells, metric);
  PELAB_RETURN_IF_ERROR(source.ReadCurves(target.filter, [&](const auto& page) {
    means.Add(page);
    return absl::OkStatus();
  }));
  const std::vector<render::Series> series = CurveSeries(cells, means.Curves());
  if (series.empty()) {
    context.out(Concat(target.title, " has no finished epoch yet\n"));
  } else {
    context.out(
        render::LinePlot(series, {Concat(target.title, ": ", metric), "epoch"}, context.style));
  }
  return kExitOk;
}

absl::StatusOr<int> Run(const Context& context, const Options& options) {
  const std::vector<std::string>& metrics = results::CurveMetrics();
  if (std::find(metrics.begin(), metrics.end(), options.metric) == metrics.end()) {
    return absl::InvalidArgumentError(
        Concat("--metric: unknown metric \"", options.metric, "\"; known: ", Join(metrics, ", ")));
  }
  PELAB_RETURN_IF_ERROR(CheckTargetNames(options.target, options.sweep));
  PELAB_ASSIGN_OR_RETURN(const auto source, FindSource(context.options));
  PELAB_ASSIGN_OR_RETURN(const Target target, FindTarget(*source, options.target, options.sweep));
  switch (context.output()) {
    case Output::kCsv:
      return PutRowsCsv(context, *source, target.filter);
    case Output::kJson:
      if (context.options.json_lines()) return PutRowLines(context, *source, target.filter);
      return PutRowsJson(context, *source, target.filter);
    case Output::kTable:
      return Plot(context, *source, target, options.metric);
  }
  return absl::InternalError("no such output");
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
