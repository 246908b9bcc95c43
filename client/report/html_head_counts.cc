// Test accuracy against the number of heads with RoPE (the paper's Figure 5).
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "client/report/html_data.h"
#include "core/base/json_text.h"
#include "core/base/strings.h"

namespace pelab::client::report {
namespace {

using render::Json;

struct Chart {
  std::map<std::string, Json> series;  // by label
  Json levels = Json::array();         // the accuracies of rope and nope, for comparison
};

// The group's accuracy with the ends of its interval.
Json Point(const results::Cell& cell) {
  Json point = TestAccuracy(cell);
  const auto end = [&](int sign) {
    if (point["half_width"].is_null()) return Json(nullptr);
    return Json(point["mean"].get<double>() + sign * point["half_width"].get<double>());
  };
  point["low"] = end(-1);
  point["high"] = end(1);
  return point;
}

// The settings that set this group apart from others of its encoding and task, except for its
// heads.
std::vector<std::string> Varied(const results::CellTable& cells, const results::Cell& cell) {
  std::vector<std::string> words;
  for (std::size_t i = 0; i < cells.columns.size(); ++i) {
    const std::string& column = cells.columns[i];
    if (column == "pe" || column == "task" || column == "pe.heads" || cell.shown[i] == "-") {
      continue;
    }
    words.push_back(column == "protocol" ? cell.shown[i] : Concat(column, "=", cell.shown[i]));
  }
  return words;
}

Json LevelOf(const results::CellTable& cells, const results::Cell& cell) {
  const CellName name = NameOf(cells, cell);
  Json level = Point(cell);
  level["label"] = name.protocol.empty() ? name.label : Concat(name.label, ", ", name.protocol);
  level["key"] = cell.jobs.front().pe_label();
  level["encoding"] = name.encoding;
  level["variant"] = Join(Varied(cells, cell), " ");
  return level;
}

// The number of leading heads that have RoPE; nullopt if the group does not select the first heads.
std::optional<int> FirstHeads(const ReportInput& input, const v1::JobRow& job) {
  if (job.pe() != "partial_rope") return std::nullopt;
  const Json spec = ParseJson<Json>(input.jobs.SpecOf(job));
  if (!spec.is_object() || !spec.contains("pe")) return std::nullopt;
  const Json& pe = spec["pe"];
  if (pe.value("select", "first") != "first") return std::nullopt;
  return pe.value("heads", 1);
}

}  // namespace

Json HeadCounts(const ReportInput& input) {
  std::map<std::string, Chart> charts;  // by task
  for (const results::Cell& cell : input.cells.cells) {
    const v1::JobRow& job = cell.jobs.front();
    Chart& chart = charts[job.task()];
    if (job.pe() == "rope" || job.pe() == "nope") {
      chart.levels.push_back(LevelOf(input.cells, cell));
    } else if (const std::optional<int> heads = FirstHeads(input, job)) {
      const std::string variant = Join(Varied(input.cells, cell), " ");
      const std::string label =
          variant.empty() ? "RoPE in the first k heads" : Concat("first k heads, ", variant);
      Json& series = chart.series[label];
      if (series.is_null())
        series = {{"label", label},
                  {"encoding", job.pe()},
                  {"variant", variant},
                  {"points", Json::array()}};
      Json point = Point(cell);
      point["x"] = *heads;
      series["points"].push_back(std::move(point));
    }
  }
  Json result = Json::array();
  for (auto& [task, chart] : charts) {
    if (chart.series.empty()) continue;
    Json series = Json::array();
    for (auto& [label, one] : chart.series) series.push_back(std::move(one));
    result.push_back(
        {{"task", task}, {"series", std::move(series)}, {"levels", std::move(chart.levels)}});
  }
  return result;
}

}  // namespace pelab::client::report
