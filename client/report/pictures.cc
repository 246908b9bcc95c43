#include "client/report/pictures.h"

#include <cmath>
#include <utility>

#include "client/render/table.h"
#include "client/render/text.h"
#include "core/views/text.h"

namespace pelab::client {
namespace {

using Align = render::Column::Align;

using CurveColumn = double (v1::CurveRow::*)() const;

CurveColumn ColumnOf(const std::string& metric) {
  if (metric == "train_loss") return &v1::CurveRow::train_loss;
  if (metric == "train_accuracy") return &v1::CurveRow::train_accuracy;
  if (metric == "test_loss") return &v1::CurveRow::test_loss;
  if (metric == "learning_rate") return &v1::CurveRow::learning_rate;
  return &v1::CurveRow::test_accuracy;
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

MeanCurves::MeanCurves(const CellTable& cells, const std::string& metric)
    : cells_(cells), value_(ColumnOf(metric)), sums_(cells.cells.size()) {
  for (std::size_t c = 0; c < cells.cells.size(); ++c) {
    for (const v1::JobRow& job : cells.cells[c].jobs) cell_of_[job.job_id()] = c;
  }
}

void MeanCurves::AddRow(const v1::CurveRow& row) {
  if (row.job_id() != job_) {
    job_ = row.job_id();
    const auto cell = cell_of_.find(job_);
    sum_ = cell == cell_of_.end() ? nullptr : &sums_[cell->second];
    if (sum_ != nullptr) ++sum_->jobs;
  }
  if (sum_ != nullptr) sum_->by_epoch[row.epoch()].push_back((row.*value_)());
}

std::vector<render::Series> MeanCurves::Series() const {
  std::vector<render::Series> series;
  for (std::size_t c = 0; c < sums_.size(); ++c) {
    const Sum& sum = sums_[c];
    render::Series one;
    const std::string seeds = SeedsLabel(sum.jobs, cells_.cells[c].jobs.size());
    one.label = Concat(cells_.cells[c].Label(), seeds.empty() ? "" : ", ", seeds);
    for (const auto& [epoch, values] : sum.by_epoch) {
      if (values.size() != sum.jobs) break;  // a mean over fewer seeds would jump
      const double mean = stats::Mean(values);
      if (std::isfinite(mean)) one.points.emplace_back(epoch, mean);
    }
    if (!one.points.empty()) series.push_back(std::move(one));
  }
  return series;
}

}  // namespace pelab::client
