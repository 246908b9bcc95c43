// Test accuracy against the number of heads with RoPE (the paper's Figure 5).
#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "client/report/html_data.h"
#include "core/base/json_text.h"
#include "core/base/strings.h"

namespace pelab::client::report {
namespace {

using render::Json;

// A group's settings as words, "layers=4". A set, because others are compared with it.
using Settings = std::set<std::string>;

// The accuracy of rope or nope, for comparison.
struct Level {
  Settings settings;
  Json json;
};

struct Chart {
  std::map<std::string, Json> series;  // by label
  std::vector<Settings> settings;      // of the series
  std::vector<Level> levels;
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

Level LevelOf(const results::CellTable& cells, const results::Cell& cell) {
  const CellName name = NameOf(cells, cell);
  const std::vector<std::string> varied = Varied(cells, cell);
  Json level = Point(cell);
  level["label"] = name.protocol.empty() ? name.label : Concat(name.label, ", ", name.protocol);
  level["key"] = cell.jobs.front().pe_label();
  level["encoding"] = name.encoding;
  level["variant"] = Join(varied, " ");
  return {Settings(varied.begin(), varied.end()), std::move(level)};
}

// Whether a series of the chart differs from the level in nothing but its encoding. Its encoding
// has settings that rope and nope lack, so the level's must be among the series'.
bool IsReference(const Level& level, const Chart& chart) {
  return std::any_of(chart.settings.begin(), chart.settings.end(), [&](const Settings& series) {
    return std::includes(series.begin(), series.end(), level.settings.begin(),
                         level.settings.end());
  });
}

Json LevelsOf(Chart& chart) {
  Json levels = Json::array();
  for (Level& level : chart.levels)
    if (IsReference(level, chart)) levels.push_back(std::move(level.json));
  return levels;
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
      const std::vector<std::string> varied = Varied(input.cells, cell);
      const std::string variant = Join(varied, " ");
      const std::string label =
          variant.empty() ? "RoPE in the first k heads" : Concat("first k heads, ", variant);
      Json& series = chart.series[label];
      if (series.is_null()) {
        series = {{"label", label},
                  {"encoding", job.pe()},
                  {"variant", variant},
                  {"points", Json::array()}};
        chart.settings.emplace_back(varied.begin(), varied.end());
      }
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
    result.push_back({{"task", task}, {"series", std::move(series)}, {"levels", LevelsOf(chart)}});
  }
  return result;
}

}  // namespace pelab::client::report
