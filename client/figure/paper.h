// Stored results in the forms of a paper: what the figures and tables of --output svg, pdf, latex and
// markdown hold. Pure functions but for PutPaper: thread-safe.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "client/figure/heat_figure.h"
#include "client/figure/line_figure.h"
#include "client/figure/paper_table.h"
#include "client/options.h"
#include "client/outputs.h"
#include "client/terminal/ablation_maps.h"
#include "core/results/cells.h"
#include "core/results/comparison.h"
#include "core/results/curves.h"

namespace CLI {
class App;
}  // namespace CLI

namespace pelab::client {

// A panel for each task and protocol, a line for each cell that has a curve of the metric.
LineFigure CurvesFigure(const results::CellTable& cells,
                        const std::vector<results::MeanCurve>& curves, const std::string& title,
                        const std::string& metric);
// A row a cell: the metric at some of the epochs, the last among them, with its interval there.
PaperTable CurvesTable(const results::CellTable& cells,
                       const std::vector<results::MeanCurve>& curves, const std::string& title,
                       const std::string& metric);

HeatFigure AblationFigure(const std::vector<AblationMap>& maps, const std::string& title);
// Layers by heads.
PaperTable AblationTable(const AblationMap& map);

// Mean, 95 % interval and n of each cell. Accuracies are in percent.
PaperTable ResultsTable(const results::CellTable& cells);
PaperTable ComparisonTable(const results::Comparison& comparison, const std::string& name_a,
                           const std::string& name_b);

// The tables one after another, as LaTeX or Markdown.
std::string TablesText(const std::vector<PaperTable>& tables, Paper paper);

// --out and --force.
struct PaperOptions {
  std::string out;
  bool force = false;
};
void AddPaperOptions(CLI::App* app, PaperOptions& options);

// INVALID_ARGUMENT for --out with an output that is not of a paper, for a PDF that would go to a
// terminal, and where --out is a directory; ALREADY_EXISTS without --force. Call it before anything
// is read.
absl::Status CheckPaper(const Context& context, const PaperOptions& options);
// To --out, whole or not at all, else to standard output.
absl::Status PutPaper(const Context& context, const PaperOptions& options,
                      const absl::StatusOr<std::string>& bytes);

}  // namespace pelab::client
