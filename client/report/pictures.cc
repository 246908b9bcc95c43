#include "client/report/pictures.h"

#include <cmath>
#include <cstdint>
#include <map>

#include "client/render/table.h"
#include "client/render/text.h"
#include "core/views/text.h"

namespace pelab::client {
namespace {

using Align = render::Column::Align;

double CurveValue(const v1::CurveRow& row, const std::string& metric) {
  if (metric == "train_loss") return row.train_loss();
  if (metric == "train_accuracy") return row.train_accuracy();
  if (metric == "test_loss") return row.test_loss();
  if (metric == "learning_rate") return row.learning_rate();
  return row.test_accuracy();
}

}  // namespace

std::string CellTableText(const CellTable& table, const render::Style& style) {
  const bool seconds = table.metric == "wall_seconds";
  const int decimals = seconds ? 1 : 4;
  std::vector<render::Column> columns = LeadingColumns(table);
  columns.push_back({table.metric, Align::kRight});
  columns.push_back({"95% interval", Align::kRight});
  columns.push_back({"n", Align::kRight});
  columns.push_back({"seeds", Align::kLeft});
  render::Table text(columns);
  bool incomplete = false;
  for (const Cell& cell : table.cells) {
    const stats::SeedSummary& s = cell.summary;
    std::vector<std::string> cells = cell.values;
    incomplete = incomplete || !s.complete();
    const std::string mark = s.complete() || !s.mean ? "" : "~";
    cells.push_back(mark + render::Fixed(s.mean, decimals));
    cells.push_back(s.half_width ? "±" + render::Fixed(s.half_width, decimals) : "-");
    cells.push_back(Concat(s.n, "/", cell.jobs.size()));
    cells.push_back(MissingText(s));
    text.AddRow(cells, s.complete() ? "" : "33");
  }
  std::string out = text.Render(style);
  if (incomplete) out += "~ not every seed of this cell has a result: this mean will change\n";
  if (!table.mixed.empty()) {
    out += Concat("note: means go over different values of ", Join(table.mixed, ", "), "\n");
  }
  return out;
}

const std::vector<std::string>& CurveMetrics() {
  static const auto& names = *new std::vector<std::string>{
      "test_accuracy", "train_accuracy", "test_loss", "train_loss", "learning_rate"};
  return names;
}

std::vector<render::Series> MeanCurves(const CellTable& cells,
                                       const std::vector<v1::CurveRow>& rows,
                                       const std::string& metric) {
  std::map<std::int64_t, std::map<int, double>> by_job;
  for (const v1::CurveRow& row : rows) by_job[row.job_id()][row.epoch()] = CurveValue(row, metric);
  std::vector<render::Series> series;
  for (const Cell& cell : cells.cells) {
    std::map<int, std::vector<double>> by_epoch;
    std::size_t with = 0;
    for (const v1::JobRow& job : cell.jobs) {
      const auto curve = by_job.find(job.job_id());
      if (curve == by_job.end()) continue;
      ++with;
      for (const auto& [epoch, value] : curve->second) by_epoch[epoch].push_back(value);
    }
    if (with == 0) continue;
    render::Series one;
    const std::string seeds = SeedsLabel(with, cell.jobs.size());
    one.label = Concat(cell.Label(), seeds.empty() ? "" : ", ", seeds);
    for (const auto& [epoch, values] : by_epoch) {
      if (values.size() != with) break;  // a mean over fewer seeds would jump
      const double mean = stats::Mean(values);
      if (std::isfinite(mean)) one.points.emplace_back(epoch, mean);
    }
    if (!one.points.empty()) series.push_back(std::move(one));
  }
  return series;
}

}  // namespace pelab::client
