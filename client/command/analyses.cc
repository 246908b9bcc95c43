#include <CLI/CLI.hpp>

#include "client/command/ablation_options.h"
#include "client/command/commands.h"
#include "client/command/where_option.h"
#include "client/source/connect.h"
#include "client/terminal/analysis_tables.h"
#include "client/terminal/put.h"
#include "client/terminal/show.h"
#include "client/terminal/unknown_values.h"
#include "core/base/status.h"
#include "core/base/strings.h"
#include "core/catalog/catalog.h"
#include "core/results/rows.h"

namespace pelab::client {
namespace {

struct AnalysesOptions {
  std::string target;
  std::string sweep;
  std::string where;
  std::string name;
};

std::string TextOf(const AnalysesOptions& options, const results::CellTable& cells,
                   const std::vector<v1::AnalysisRow>& rows, const render::Style& style) {
  if (options.name == "layer_ablation") return LayerAblationText(cells, rows, style);
  if (options.name == "cumulative_ablation") return CumulativeAblationText(cells, rows, style);
  if (options.name == "split_accuracy") return SplitAccuracyText(cells, rows, style);
  return AnalysisTableText(cells, rows, style);
}

absl::StatusOr<int> Run(const Context& context, const AnalysesOptions& options) {
  PELAB_RETURN_IF_ERROR(CheckTargetNames(options.target, options.sweep, options.where));
  if (!options.name.empty()) PELAB_RETURN_IF_ERROR(CheckAnalysisName("--name", options.name));
  PELAB_ASSIGN_OR_RETURN(auto source, FindSource(context.options));
  PELAB_ASSIGN_OR_RETURN(const Target target,
                         FindTarget(*source, options.target, options.sweep, options.where));
  PELAB_ASSIGN_OR_RETURN(const auto rows, source->Analyses(target.filter, options.name));
  PELAB_RETURN_IF_ERROR(NoteUnknownValues(context, *source, target.filter, rows.size()));
  results::JobList jobs;
  if (context.output() != Output::kCsv) {
    PELAB_ASSIGN_OR_RETURN(jobs, source->Jobs(target.filter));
  }
  PELAB_ASSIGN_OR_RETURN(results::CellTable cells, results::BuildCells(jobs, "test_accuracy", {}));
  if (!target.is_sweep) results::OneSeedEach(cells);
  const auto json = [&] {
    return render::Json{{"jobs", results::ToJsonArray(jobs)},
                        {"analyses", results::ToJsonArray(rows)}};
  };
  const auto text = [&] {
    const std::string text = TextOf(options, cells, rows, context.style);
    if (text.empty()) {
      return Concat(target.title, " has no ", options.name.empty() ? "analysis" : options.name,
                    " yet; pelab analyze adds one to a finished job\n");
    }
    return options.name == "head_ablation"
               ? text + "the matrices: pelab ablation; their indices: pelab deposits\n"
               : text;
  };
  return Put(context, {.json = json,
                       .text = text,
                       .rows = "analyses",
                       .columns = results::ColumnsOf<v1::AnalysisRow>()});
}

}  // namespace

void AddAnalyses(Commands& commands) {
  auto options = std::make_shared<AnalysesOptions>();
  CLI::App* app =
      AddCommand(commands, "analyses", "the analyses that are stored, and what they found",
                 "  pelab analyses quick\n"
                 "  pelab analyses quick --name layer_ablation\n"
                 "  pelab analyses quick --name split_accuracy\n"
                 "  pelab analyses 12 --name cumulative_ablation --output json");
  AddTarget(app, options->target, options->sweep);
  AddWhere(app, options->where);
  app->add_option(
      "--name", options->name,
      "results of one: layer_ablation as a table by layer, cumulative_ablation as "
      "greedy against random order, split_accuracy as a table by split [default: a list "
      "of all]");
  app->callback([&commands, options] {
    commands.chosen = [&commands, options] { return Run(*commands.context, *options); };
  });
}

}  // namespace pelab::client
