#include "client/report/pictures.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <tuple>

#include "client/render/table.h"
#include "client/render/text.h"
#include "core/views/text.h"

namespace pelab::client {
namespace {

using Align = render::Column::Align;

std::string Missing(const stats::SeedSummary& s) {
  if (s.complete()) return "";
  std::vector<std::string> parts;
  if (s.missing > 0) parts.push_back(Concat(s.missing, " missing"));
  if (s.failed > 0) parts.push_back(Concat(s.failed, " failed"));
  return Join(parts, ", ");
}

double CurveValue(const v1::CurveRow& row, const std::string& metric) {
  if (metric == "train_loss") return row.train_loss();
  if (metric == "train_accuracy") return row.train_accuracy();
  if (metric == "test_loss") return row.test_loss();
  if (metric == "learning_rate") return row.learning_rate();
  return row.test_accuracy();
}

std::string SeedsLabel(std::size_t with, std::size_t of) {
  if (of == 1) return "";
  if (with == of) return Concat(", mean of ", of, " seeds");
  return Concat(", mean of ", with, " of ", of, " seeds");
}

}  // namespace

std::string CellTableText(const CellTable& table, const render::Style& style) {
  const bool seconds = table.metric == "wall_seconds";
  const int decimals = seconds ? 1 : 4;
  std::vector<render::Column> columns;
  for (const std::string& name : table.columns) columns.push_back({name, Align::kLeft, true});
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
    cells.push_back(s.complete() ? "complete" : Missing(s));
    text.AddRow(cells, s.complete() ? "" : "33");
  }
  std::string out = text.Render(style);
  if (incomplete) out += "~ not every seed of this cell has a result: this mean will change\n";
  if (!table.mixed.empty()) {
    out += Concat("note: means go over different values of ", Join(table.mixed, ", "), "\n");
  }
  return out;
}

void NameSeeds(CellTable& table) {
  table.columns.push_back("seed");
  for (Cell& cell : table.cells) {
    cell.values.push_back(cell.jobs.size() == 1 ? Concat("seed ", cell.jobs.front().seed()) : "");
  }
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
    one.label = cell.Label() + SeedsLabel(with, cell.jobs.size());
    for (const auto& [epoch, values] : by_epoch) {
      if (values.size() != with) break;  // a mean over fewer seeds would jump
      const double mean = stats::Mean(values);
      if (std::isfinite(mean)) one.points.emplace_back(epoch, mean);
    }
    if (!one.points.empty()) series.push_back(std::move(one));
  }
  return series;
}

std::vector<AblationMap> MeanAblations(const CellTable& cells,
                                       const std::vector<v1::HeadAblationRow>& rows) {
  using Variant = std::tuple<std::string, std::string, std::string>;
  std::map<std::int64_t, std::map<Variant, std::vector<const v1::HeadAblationRow*>>> by_job;
  for (const v1::HeadAblationRow& row : rows) {
    by_job[row.job_id()][{row.method(), row.hygiene(), row.split()}].push_back(&row);
  }
  std::vector<AblationMap> maps;
  for (const Cell& cell : cells.cells) {
    struct Sum {
      std::map<std::pair<int, int>, std::vector<double>> drops;
      std::size_t seeds = 0;
    };
    std::map<Variant, Sum> sums;
    for (const v1::JobRow& job : cell.jobs) {
      for (const auto& [variant, heads] : by_job[job.job_id()]) {
        Sum& sum = sums[variant];
        ++sum.seeds;
        for (const auto* head : heads)
          sum.drops[{head->layer(), head->head()}].push_back(head->accuracy_drop());
      }
    }
    for (const auto& [variant, sum] : sums) {
      AblationMap out;
      for (const auto& [place, drops] : sum.drops) {
        out.map.layers = std::max(out.map.layers, place.first + 1);
        out.map.heads = std::max(out.map.heads, place.second + 1);
      }
      out.map.values.assign(static_cast<std::size_t>(out.map.layers) * out.map.heads,
                            std::numeric_limits<double>::quiet_NaN());
      out.strongest = -std::numeric_limits<double>::infinity();
      for (const auto& [place, drops] : sum.drops) {
        const double mean = stats::Mean(drops);
        out.map.values[static_cast<std::size_t>(place.first) * out.map.heads + place.second] = mean;
        out.strongest = std::max(out.strongest, mean);
      }
      const auto& [method, hygiene, split] = variant;
      out.map.title = Concat(cell.Label(), ": accuracy lost without each head, in points (", method,
                             " ablation, ", hygiene, ", ", split, " data",
                             SeedsLabel(sum.seeds, cell.jobs.size()), ")");
      maps.push_back(std::move(out));
    }
  }
  return maps;
}

}  // namespace pelab::client
