#include "client/figure/paper.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <optional>
#include <utility>

#include "client/figure/looks.h"
#include "client/options/out_file.h"
#include "client/report/html_data.h"
#include "client/terminal/metric_text.h"
#include "core/base/file.h"
#include "core/base/status.h"
#include "core/base/strings.h"
#include "core/render/text.h"

namespace pelab::client {
namespace {

constexpr std::size_t kEpochsInTable = 6;

bool IsAccuracy(const std::string& metric) { return metric.ends_with("accuracy"); }

// "test_accuracy" becomes "test accuracy".
std::string Words(std::string metric) {
  std::replace(metric.begin(), metric.end(), '_', ' ');
  return metric;
}

// How a metric is displayed: accuracies in percent, gaps in points.
struct Form {
  std::string title;
  double factor = 1;
  int decimals = 4;
  std::string Text(const std::optional<double>& value) const {
    return render::Fixed(value ? std::optional(factor * *value) : std::nullopt, decimals);
  }
};
Form FormOf(const results::Metric& metric) {
  const std::string words = Words(metric.name);
  if (metric.source == results::Metric::Source::kJob && IsAccuracy(metric.name)) {
    return {words + " (%)", 100, 2};
  }
  if (metric.name == "generalisation_gap") return {words + " (points)", 100, 2};
  return {words, 1, DecimalsOf(metric)};
}

std::string IntervalOf(const stats::SeedSummary& summary, const Form& form) {
  if (!summary.low || !summary.high) return "-";
  const bool even = summary.half_width && *summary.low == *summary.mean - *summary.half_width &&
                    *summary.high == *summary.mean + *summary.half_width;
  if (even) return Concat("±", form.Text(summary.half_width));
  return Concat(form.Text(summary.low), " to ", form.Text(summary.high));
}

std::string IntervalOf(const results::CurvePoint& point, bool is_share, const Form& form) {
  if (!point.half_width) return "-";
  const double low = point.mean - *point.half_width, high = point.mean + *point.half_width;
  if (!is_share || (low >= 0 && high <= 1)) return Concat("±", form.Text(point.half_width));
  return Concat(form.Text(std::max(low, 0.0)), " to ", form.Text(std::min(high, 1.0)));
}

std::vector<PaperTable::Column> NamingColumns(const std::vector<std::string>& names) {
  std::vector<PaperTable::Column> columns;
  columns.reserve(names.size());
  for (const std::string& name : names) columns.push_back({name == "pe" ? "encoding" : name});
  return columns;
}

std::string IntervalNote(stats::IntervalKind kind) {
  return kind == stats::IntervalKind::kStudentT
             ? "Interval: 95 %, of the mean over seeds, by Student's t."
             : "Interval: 95 %, percentile bootstrap of the mean over seeds; too narrow for few "
               "seeds.";
}

// The epochs that get a column: evenly spread, including the last one.
std::vector<int> EpochsOf(int last) {
  std::vector<int> epochs;
  const int count = std::min(static_cast<int>(kEpochsInTable), last + 1);
  epochs.reserve(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) {
    epochs.push_back(count == 1 ? last
                                : static_cast<int>(std::lround(1.0 * last * i / (count - 1))));
  }
  return epochs;
}

}  // namespace

LineFigure CurvesFigure(const results::CellTable& cells,
                        const std::vector<results::MeanCurve>& curves, const std::string& title,
                        const std::string& metric) {
  const Looks looks(cells);
  LineFigure figure{
      .title = title, .x_label = "epoch", .y_label = Words(metric), .percent = IsAccuracy(metric)};
  for (std::size_t c = 0; c < curves.size(); ++c) {
    if (curves[c].points.empty()) continue;
    const results::Cell& cell = cells.cells[c];
    const report::CellName name = report::NameOf(cells, cell);
    auto panel = std::find_if(figure.panels.begin(), figure.panels.end(),
                              [&](const LinePanel& known) { return known.title == name.group; });
    if (panel == figure.panels.end()) {
      panel = figure.panels.insert(figure.panels.end(), {name.group, {}});
    }
    LineSeries series{.label = name.label, .look = looks.Of(cell)};
    for (const results::CurvePoint& point : curves[c].points) {
      series.x.push_back(point.epoch);
      series.mean.push_back(point.mean);
      series.half_widths.push_back(
          point.half_width.value_or(std::numeric_limits<double>::quiet_NaN()));
    }
    panel->series.push_back(std::move(series));
  }
  return figure;
}

PaperTable CurvesTable(const results::CellTable& cells,
                       const std::vector<results::MeanCurve>& curves, const std::string& title,
                       const std::string& metric) {
  const bool percent = IsAccuracy(metric);
  const Form form{Words(metric) + (percent ? " (%)" : ""), percent ? 100.0 : 1.0, percent ? 2 : 4};
  int last = 0;
  for (const results::MeanCurve& curve : curves) {
    if (!curve.points.empty()) last = std::max(last, curve.points.back().epoch);
  }
  PaperTable table{.caption = Concat(title, ": ", form.title, " by epoch"),
                   .columns = NamingColumns(cells.columns)};
  const std::vector<int> epochs = EpochsOf(last);
  for (const int epoch : epochs) table.columns.push_back({Concat("epoch ", epoch), true});
  table.columns.push_back({"interval", true});
  table.columns.push_back({"n", true});
  for (std::size_t c = 0; c < curves.size(); ++c) {
    const auto& points = curves[c].points;
    if (points.empty()) continue;
    std::vector<std::string> row = cells.cells[c].values;
    for (const int epoch : epochs) {
      const auto point = std::find_if(points.begin(), points.end(),
                                      [&](const auto& one) { return one.epoch == epoch; });
      row.push_back(form.Text(point == points.end() ? std::nullopt : std::optional(point->mean)));
    }
    row.push_back(IntervalOf(points.back(), percent, form));
    row.push_back(Concat(curves[c].seeds, "/", cells.cells[c].jobs.size()));
    table.rows.push_back(std::move(row));
  }
  table.notes = {
      "Means over seeds; interval: 95 % by Student's t, after a cell's last epoch. n: "
      "seeds in the mean, of all."};
  return table;
}

HeatFigure AblationFigure(const std::vector<AblationMap>& maps, const std::string& title) {
  HeatFigure figure{.title = title};
  for (const AblationMap& map : maps) figure.maps.push_back(map.map);
  if (maps.empty()) return figure;
  switch (maps.front().metric) {
    case results::AblationMetric::kAccuracyDrop:
      figure.unit = "accuracy lost, in points";
      break;
    case results::AblationMetric::kNllDrop:
      figure.unit = "loss added, in nats";
      break;
    case results::AblationMetric::kNormalizedDrop:
      figure.unit = "accuracy lost, in percent of what is above chance";
      break;
  }
  return figure;
}

PaperTable AblationTable(const AblationMap& map) {
  const render::HeatMap& values = map.map;
  PaperTable table{.caption = values.title, .columns = {{"layer", true}}};
  for (int head = 0; head < values.heads; ++head) {
    table.columns.push_back({Concat(values.columns, " ", head + values.first), true});
  }
  bool missing = false, muted = false;
  for (int layer = 0; layer < values.layers; ++layer) {
    std::vector<std::string> row = {Concat(layer)};
    for (int head = 0; head < values.heads; ++head) {
      const std::size_t at = static_cast<std::size_t>(layer) * values.heads + head;
      const bool is_muted = at < values.muted.size() && values.muted[at];
      const bool is_missing = std::isnan(values.values[at]);
      missing = missing || is_missing;
      muted = muted || (is_muted && !is_missing);
      row.push_back(is_missing ? "-"
                               : render::Fixed(values.values[at] * values.factor, values.decimals) +
                                     (is_muted ? "?" : ""));
    }
    table.rows.push_back(std::move(row));
  }
  if (muted) {
    table.notes.emplace_back(
        "?: within 3 standard errors of the paired change in every seed, so it may be chance.");
  }
  if (missing) table.notes.emplace_back("-: there is no such entry.");
  return table;
}

PaperTable ResultsTable(const results::CellTable& cells) {
  const Form form = FormOf(cells.metric);
  PaperTable table{.caption = Words(cells.metric.name) + ", means over seeds",
                   .columns = NamingColumns(cells.columns)};
  table.columns.push_back({form.title, true});
  table.columns.push_back({"interval", true});
  table.columns.push_back({"n", true});
  bool incomplete = false;
  for (const results::Cell& cell : cells.cells) {
    const stats::SeedSummary& summary = cell.summary;
    std::vector<std::string> row = cell.shown;
    const bool marked = !summary.complete() && summary.mean.has_value();
    incomplete = incomplete || marked;
    row.push_back(form.Text(summary.mean) + (marked ? "*" : ""));
    row.push_back(IntervalOf(summary, form));
    row.push_back(Concat(summary.n, "/", cell.jobs.size()));
    table.rows.push_back(std::move(row));
  }
  table.notes.push_back(IntervalNote(cells.interval) + " n: seeds in the mean, of all.");
  if (incomplete) {
    table.notes.emplace_back("*: not every seed of this group has a result.");
  }
  if (std::string diverged = results::DivergedText(cells); !diverged.empty()) {
    table.notes.push_back(diverged + ".");
  }
  if (!cells.mixed.empty()) {
    table.notes.push_back(
        Concat("Means combine different values of ", Join(cells.mixed, ", "), "."));
  }
  return table;
}

PaperTable ComparisonTable(const results::Comparison& comparison, const std::string& name_a,
                           const std::string& name_b) {
  Form form = FormOf(comparison.metric);
  PaperTable table{.caption = Concat(Words(comparison.metric.name), ": ", name_a, " against ",
                                     name_b, ", paired by seed"),
                   .columns = NamingColumns(comparison.columns)};
  for (const std::string& title :
       {name_a, name_b, std::string("difference"), std::string("interval"), std::string("p"),
        std::string("pairs")}) {
    table.columns.push_back({title, true});
  }
  for (const results::PairGroup& group : comparison.groups) {
    std::vector<std::string> row = group.shown;
    row.push_back(form.Text(group.a.mean));
    row.push_back(form.Text(group.b.mean));
    const auto& mean = group.difference.mean;
    row.push_back(mean && *mean >= 0 ? "+" + form.Text(mean) : form.Text(mean));
    row.push_back(IntervalOf(group.difference, form));
    row.push_back(group.test ? render::Probability(group.test->p) : "-");
    row.push_back(Concat(group.difference.n, "/", group.pairs.size()));
    table.rows.push_back(std::move(row));
  }
  table.notes.push_back(IntervalNote(comparison.interval) + " p: paired t test, two-sided.");
  if (std::string diverged = results::DivergedText(comparison, name_a, name_b); !diverged.empty()) {
    table.notes.push_back(diverged + ".");
  }
  for (const std::string& other : results::ShownConfounders(comparison)) {
    table.notes.push_back(Concat("The sides also differ in ", other, "."));
  }
  return table;
}

std::string TablesText(const std::vector<PaperTable>& tables, Paper paper) {
  std::string text;
  for (const PaperTable& table : tables) {
    text += Concat(text.empty() ? "" : "\n",
                   paper == Paper::kLatex ? ToLatex(table) : ToMarkdown(table));
  }
  return text;
}

void AddPaperOptions(CLI::App* app, PaperOptions& options) {
  app->add_option("--out", options.out,
                  "write svg, pdf, latex or markdown to this file [default: standard output]")
      ->type_name("FILE");
  app->add_flag("--force", options.force, "replace an existing file");
}

absl::Status CheckPaper(const Context& context, const PaperOptions& options) {
  const std::string& output = context.options.output_name;
  const std::optional<Paper> paper = PaperOf(output);
  if (options.out.empty()) {
    if (paper != Paper::kPdf || !context.stdout_is_terminal) return absl::OkStatus();
    return absl::InvalidArgumentError(
        "--output pdf is not for a terminal: say `> figure.pdf`, or --out figure.pdf");
  }
  if (!paper) {
    return absl::InvalidArgumentError(Concat("--out is for --output svg, pdf, latex and markdown; ",
                                             output, " goes to standard output: say `> ",
                                             options.out, "`"));
  }
  return Annotate(FileToWrite(options.out, options.force).status(), "--out");
}

absl::Status PutPaper(const Context& context, const PaperOptions& options,
                      const absl::StatusOr<std::string>& bytes) {
  if (!bytes.ok()) return bytes.status();
  if (!options.out.empty()) {
    PELAB_ASSIGN_OR_RETURN(const std::string file, FileToWrite(options.out, options.force));
    return WriteFileAtomically(file, *bytes);
  }
  context.out(*bytes);
  return absl::OkStatus();
}

}  // namespace pelab::client
