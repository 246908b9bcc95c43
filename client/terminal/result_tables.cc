#include "client/terminal/result_tables.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "client/terminal/columns.h"
#include "client/terminal/metric_text.h"
#include "client/terminal/table.h"
#include "core/base/strings.h"
#include "core/render/text.h"

namespace pelab::client {
namespace {

using Align = render::Column::Align;

constexpr std::size_t kFewSeeds = 3;  // with so few seeds, the values say more than their interval

// "0.2710 0.4032 >19": the value of each seed, if there are 2 or 3 values; ">19" is a seed that had
// not reached the accuracy by epoch 19.
std::string ValuesText(const results::CellTable& table, const results::Cell& cell) {
  using State = stats::SeedResult::State;
  const bool epochs = table.metric.source == results::Metric::Source::kEpochs;
  const int decimals = epochs ? 0 : DecimalsOf(table.metric);
  std::vector<std::string> values;
  for (const stats::SeedResult& result : cell.results) {
    if (result.state == State::kDone) values.push_back(render::Fixed(result.value, decimals));
    if (result.state == State::kCensored) {
      values.push_back(">" + render::Fixed(result.value, decimals));
    }
  }
  return values.size() < 2 || values.size() > kFewSeeds ? "" : Join(values, " ");
}

// The seeds' values, and warnings about missing, diverged and other special seeds.
std::string SeedsText(const results::CellTable& table, const results::Cell& cell) {
  const stats::SeedSummary& summary = cell.summary;
  std::vector<std::string> parts;
  if (std::string values = ValuesText(table, cell); !values.empty()) parts.push_back(values);
  if (!summary.complete()) parts.push_back(results::MissingText(summary));
  const auto of = [&](int count) { return Concat(count, " of ", cell.jobs.size()); };
  if (summary.censored > 0) parts.push_back("not reached by " + of(summary.censored));
  if (const int diverged = results::DivergedOf(cell); diverged > 0) {
    parts.push_back(of(diverged) + " diverged");
  }
  return parts.empty() ? results::MissingText(summary) : Join(parts, ", ");
}

std::string MedianText(const stats::SeedSummary& summary) {
  if (summary.median) return render::Fixed(summary.median, 0);
  return summary.median_above ? "> " + render::Fixed(summary.median_above, 0) : "-";
}

// The notes below a table, one sentence each.
std::vector<std::string> NotesOf(const results::CellTable& table) {
  const auto any = [&](const auto& holds) {
    return std::any_of(table.cells.begin(), table.cells.end(), holds);
  };
  std::vector<std::string> notes;
  const auto marked = [](const auto& cell) {
    return !cell.summary.complete() && cell.summary.mean.has_value();
  };
  if (any([&](const auto& cell) { return marked(cell) && results::IsOpen(cell); })) {
    notes.emplace_back("~ not every seed of this group has a result: this mean will change");
  } else if (any(marked)) {
    notes.emplace_back("~ not every seed of this group has a result");
  }
  if (table.interval == stats::IntervalKind::kBootstrap) {
    notes.emplace_back("interval: percentile bootstrap of the mean; too narrow for few seeds");
  }
  if (table.metric.source == results::Metric::Source::kEpochs) {
    notes.emplace_back(
        "epochs are numbered from 0; median: the first epoch by which half of the "
        "seeds were there; > E: not by epoch E, the last; no mean where a seed never was");
  }
  if (any([](const auto& cell) { return results::DivergedOf(cell) > 0; })) {
    notes.emplace_back("diverged: final losses in training and test are above that of guessing");
  }
  if (!table.mixed.empty()) {
    notes.push_back(Concat("note: means combine different values of ",
                           render::Escape(Join(table.mixed, ", "))));
  }
  return notes;
}

}  // namespace

std::string CellTableText(const results::CellTable& table, const render::Style& style) {
  const int decimals = DecimalsOf(table.metric);
  const bool epochs = table.metric.source == results::Metric::Source::kEpochs;
  std::vector<render::Column> columns = LeadingColumns(table);
  columns.push_back({table.metric.name, Align::kRight});
  columns.push_back({"95% interval", Align::kRight});
  if (epochs) columns.push_back({"median", Align::kRight});
  columns.push_back({"n", Align::kRight});
  columns.push_back({"seeds", Align::kLeft, true});
  render::Table text(columns);
  for (const results::Cell& cell : table.cells) {
    const stats::SeedSummary& s = cell.summary;
    std::vector<std::string> cells = cell.shown;
    const std::string mark = s.complete() || !s.mean ? "" : "~";
    cells.push_back(mark + render::Fixed(s.mean, decimals));
    cells.push_back(IntervalText(s, decimals));
    if (epochs) cells.push_back(MedianText(s));
    cells.push_back(Concat(s.n, "/", cell.jobs.size()));
    cells.push_back(SeedsText(table, cell));
    text.AddRow(cells, s.complete() && results::DivergedOf(cell) == 0 ? "" : "33");
  }
  std::string out = text.Render(style);
  for (const std::string& note : NotesOf(table)) out += render::Wrap(note, style.width) + "\n";
  return out;
}

std::vector<render::Series> CurveSeries(const results::CellTable& cells,
                                        const std::vector<results::MeanCurve>& curves) {
  std::vector<render::Series> series;
  for (std::size_t c = 0; c < curves.size(); ++c) {
    if (curves[c].points.empty()) continue;
    const results::Cell& cell = cells.cells[c];
    const std::string seeds = results::SeedsLabel(curves[c].seeds, cell.jobs.size());
    render::Series one;
    one.label = Concat(cell.Label(), seeds.empty() ? "" : ", ", seeds);
    for (const results::CurvePoint& point : curves[c].points) {
      one.points.emplace_back(point.epoch, point.mean);
      one.half_widths.push_back(
          point.half_width.value_or(std::numeric_limits<double>::quiet_NaN()));
    }
    series.push_back(std::move(one));
  }
  return series;
}

}  // namespace pelab::client
