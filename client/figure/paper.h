// The figures and tables for papers, made from stored results: --output svg, pdf, latex and
// markdown. Pure functions except PutPaper: thread-safe.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "client/figure/heat_figure.h"
#include "client/figure/line_figure.h"
#include "client/figure/paper_table.h"
#include "client/options/options.h"
#include "client/options/outputs.h"
#include "client/terminal/ablation_maps.h"
#include "core/results/cells.h"
#include "core/results/comparison.h"
#include "core/results/curves.h"

namespace CLI {
class App;
}  // namespace CLI

namespace pelab::client {

// One panel for each task and protocol, one line for each group that has a curve of the metric.
LineFigure CurvesFigure(const results::CellTable& cells,
                        const std::vector<results::MeanCurve>& curves, const std::string& title,
                        const std::string& metric);
// One row per group: the metric at up to 6 epochs. The last epoch is one of them and also has the
// interval.
PaperTable CurvesTable(const results::CellTable& cells,
                       const std::vector<results::MeanCurve>& curves, const std::string& title,
                       const std::string& metric);

HeatFigure AblationFigure(const std::vector<AblationMap>& maps, const std::string& title);
// A table of layers by heads.
PaperTable AblationTable(const AblationMap& map);

// Mean, 95 % interval and n of each group. Accuracies are in percent.
PaperTable ResultsTable(const results::CellTable& cells);
PaperTable ComparisonTable(const results::Comparison& comparison, const std::string& name_a,
                           const std::string& name_b);

// The tables one after another, as LaTeX or Markdown.
std::string TablesText(const std::vector<PaperTable>& tables, Paper paper);

// The values of --out and --force.
struct PaperOptions {
  std::string out;
  bool force = false;
};
void AddPaperOptions(CLI::App* app, PaperOptions& options);

// INVALID_ARGUMENT for --out with an output that is not for papers, for a PDF to a terminal, and if
// --out is a directory. ALREADY_EXISTS if --out exists, unless --force. Call it before reading any
// data.
absl::Status CheckPaper(const Context& context, const PaperOptions& options);
// Writes to --out atomically; without --out, to standard output.
absl::Status PutPaper(const Context& context, const PaperOptions& options,
                      const absl::StatusOr<std::string>& bytes);

}  // namespace pelab::client
