#include "client/report/pictures.h"

#include <limits>
#include <utility>

#include "client/render/table.h"
#include "client/report/columns.h"
#include "client/report/figures.h"
#include "core/render/text.h"
#include "core/views/text.h"

namespace pelab::client {
namespace {

using Align = render::Column::Align;

}  // namespace

std::string CellTableText(const results::CellTable& table, const render::Style& style) {
  const int decimals = DecimalsOf(table.metric);
  std::vector<render::Column> columns = LeadingColumns(table);
  columns.push_back({table.metric.name, Align::kRight});
  columns.push_back({"95% interval", Align::kRight});
  columns.push_back({"n", Align::kRight});
  columns.push_back({"seeds", Align::kLeft, true});
  render::Table text(columns);
  bool incomplete = false;
  for (const results::Cell& cell : table.cells) {
    const stats::SeedSummary& s = cell.summary;
    std::vector<std::string> cells = cell.values;
    incomplete = incomplete || !s.complete();
    const std::string mark = s.complete() || !s.mean ? "" : "~";
    cells.push_back(mark + render::Fixed(s.mean, decimals));
    cells.push_back(IntervalText(s, decimals));
    cells.push_back(Concat(s.n, "/", cell.jobs.size()));
    cells.push_back(results::MissingText(s));
    text.AddRow(cells, s.complete() ? "" : "33");
  }
  std::string out = text.Render(style);
  if (incomplete) out += "~ not every seed of this cell has a result: this mean will change\n";
  if (table.interval == stats::IntervalKind::kBootstrap) {
    out += "interval: percentile bootstrap of the mean; too narrow for few seeds\n";
  }
  if (incomplete && table.metric.source == results::Metric::Source::kEpochs) {
    out += "missing: not ended, or never as accurate\n";
  }
  if (!table.mixed.empty()) {
    out += render::Wrap(Concat("note: means go over different values of ", Join(table.mixed, ", ")),
                        style.width) +
           "\n";
  }
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
