#include "client/report/html_data.h"

#include <functional>
#include <map>
#include <optional>
#include <utility>

#include "client/report/claims.h"
#include "core/results/deposits.h"
#include "core/results/rows.h"
#include "core/stats/seeds.h"
#include "core/views/text.h"

namespace pelab::client {
namespace report {
namespace {

using render::Json;

Json OrNull(const std::optional<double>& value) { return value ? Json(*value) : Json(nullptr); }

// The value of a column of the cells; empty where it is none of them.
std::string ValueIn(const results::CellTable& cells, const results::Cell& cell,
                    const std::string& column) {
  for (std::size_t i = 0; i < cells.columns.size(); ++i) {
    if (cells.columns[i] == column) return cell.values[i];
  }
  return "";
}

// {"mean", "half_width", "n", "of", "missing", "failed"} over a cell's seeds that are done.
Json Summary(const results::Cell& cell,
             const std::function<std::optional<double>(const v1::JobRow&)>& of) {
  std::vector<stats::SeedResult> results;
  for (const v1::JobRow& job : cell.jobs) {
    const std::optional<double> value = IsDone(job) ? of(job) : std::nullopt;
    results.push_back(value ? stats::SeedResult{stats::SeedResult::State::kDone, *value}
                            : stats::SeedResult{});
  }
  const stats::SeedSummary summary = stats::Summarise(results);
  return {{"mean", OrNull(summary.mean)},
          {"sd", OrNull(summary.sd)},
          {"half_width", OrNull(summary.half_width)},
          {"n", summary.n},
          {"of", cell.jobs.size()},
          {"missing", cell.summary.missing},
          {"failed", cell.summary.failed}};
}

std::optional<double> If(bool has, double value) {
  return has ? std::optional(value) : std::nullopt;
}

Json CellJson(const results::CellTable& cells, const results::Cell& cell) {
  const CellName name = NameOf(cells, cell);
  Json values = Json::object();
  for (std::size_t i = 0; i < cells.columns.size(); ++i) values[cells.columns[i]] = cell.values[i];
  Json jobs = Json::array();
  for (const v1::JobRow& job : cell.jobs) {
    jobs.push_back({{"job_id", job.job_id()},
                    {"seed", job.seed()},
                    {"done", IsDone(job)},
                    {"test_accuracy", OrNull(If(job.has_test_accuracy(), job.test_accuracy()))}});
  }
  return {
      {"label", cell.Label()},
      {"short", name.label},
      {"group", name.group},
      {"pe", cell.jobs.front().pe()},
      {"pe_label", cell.jobs.front().pe_label()},
      {"task", name.task},
      {"protocol", cell.jobs.front().protocol()},
      {"values", std::move(values)},
      {"complete", cell.summary.complete()},
      {"test",
       Summary(cell,
               [](const auto& job) { return If(job.has_test_accuracy(), job.test_accuracy()); })},
      {"train",
       Summary(cell,
               [](const auto& job) { return If(job.has_train_accuracy(), job.train_accuracy()); })},
      {"best", Summary(cell,
                       [](const auto& job) {
                         return If(job.has_best_test_accuracy(), job.best_test_accuracy());
                       })},
      {"gap", Summary(cell,
                      [](const auto& job) {
                        return If(job.has_train_accuracy() && job.has_test_accuracy(),
                                  job.train_accuracy() - job.test_accuracy());
                      })},
      {"wall",
       Summary(cell,
               [](const auto& job) { return If(job.has_wall_seconds(), job.wall_seconds()); })},
      {"jobs", std::move(jobs)}};
}

}  // namespace

bool IsDone(const v1::JobRow& job) {
  const bool ended = job.state() == v1::JOB_STATE_SUCCEEDED || job.trained();
  return ended && job.state() != v1::JOB_STATE_FAILED && job.state() != v1::JOB_STATE_CANCELLED;
}

CellName NameOf(const results::CellTable& cells, const results::Cell& cell) {
  CellName name;
  name.task = cell.jobs.front().task();
  name.protocol = ValueIn(cells, cell, "protocol");
  name.group = name.protocol.empty() ? name.task : Concat(name.task, ", ", name.protocol);
  std::vector<std::string> words;
  for (std::size_t i = 0; i < cells.columns.size(); ++i) {
    const std::string& column = cells.columns[i];
    if (column == "task" || column == "protocol" || cell.values[i] == "-") continue;
    words.push_back(column == "pe" ? cell.values[i] : Concat(column, "=", cell.values[i]));
  }
  name.label = Join(words, " ");
  return name;
}

Json Lacking(const ReportInput& input) {
  Json rows = Json::array();
  for (std::size_t c = 0; c < input.cells.cells.size(); ++c) {
    for (const v1::JobRow& job : input.cells.cells[c].jobs) {
      if (IsDone(job)) continue;
      const Json row = results::ToJson(job, "");
      rows.push_back({{"cell", c},
                      {"job_id", job.job_id()},
                      {"seed", job.seed()},
                      {"state", row["state"]},
                      {"epochs_done", job.epochs_done()},
                      {"epochs", job.epochs()},
                      {"attempts", job.attempts()},
                      {"error", row["error"]}});
    }
  }
  return rows;
}

Json Deposits(const ReportInput& input) {
  Json rows = Json::array();
  for (const results::DepositGroup& group :
       results::DepositGroups(input.cells, input.deposits, input.variants, false)) {
    Json row = results::ToJson(input.cells, group);
    row["cell"] = group.cell - input.cells.cells.data();
    row["variant"] = group.variant ? Json(results::Describe(*group.variant)) : Json(nullptr);
    rows.push_back(std::move(row));
  }
  return rows;
}

Json HeadCounts(const ReportInput& input) {
  struct Chart {
    std::map<std::string, Json> series;  // by label
    Json levels = Json::array();
  };
  std::map<std::string, Chart> charts;  // by task
  for (const results::Cell& cell : input.cells.cells) {
    const v1::JobRow& job = cell.jobs.front();
    const Json spec = Json::parse(input.jobs.SpecOf(job), nullptr, /*allow_exceptions=*/false);
    if (!spec.is_object() || !spec.contains("pe")) continue;
    Json point = Summary(
        cell, [](const auto& row) { return If(row.has_test_accuracy(), row.test_accuracy()); });
    const auto bound = [&](int sign) {
      if (point["half_width"].is_null()) return Json(nullptr);
      return Json(point["mean"].get<double>() + sign * point["half_width"].get<double>());
    };
    point["low"] = bound(-1);
    point["high"] = bound(1);
    const CellName name = NameOf(input.cells, cell);
    Chart& chart = charts[job.task()];
    if (job.pe() == "rope" || job.pe() == "nope") {
      point["label"] = name.protocol.empty() ? name.label : Concat(name.label, ", ", name.protocol);
      point["key"] = job.pe_label();
      chart.levels.push_back(std::move(point));
      continue;
    }
    const Json& pe = spec["pe"];
    if (job.pe() != "partial_rope" || pe.value("select", "first") != "first") continue;
    std::vector<std::string> words;  // what sets it apart, but for the heads
    for (std::size_t i = 0; i < input.cells.columns.size(); ++i) {
      const std::string& column = input.cells.columns[i];
      if (column == "pe" || column == "task" || column == "pe.heads" || cell.values[i] == "-")
        continue;
      words.push_back(column == "protocol" ? cell.values[i] : Concat(column, "=", cell.values[i]));
    }
    const std::string label =
        words.empty() ? "RoPE in the first k heads" : Concat("first k heads, ", Join(words, " "));
    Json& series = chart.series[label];
    if (series.is_null()) series = {{"label", label}, {"points", Json::array()}};
    point["x"] = pe.value("heads", 1);
    series["points"].push_back(std::move(point));
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

}  // namespace report

render::Json ReportData(const ReportInput& input, const ReportOptions& options) {
  using render::Json;
  Json sweeps = Json::array();
  for (const v1::Sweep& sweep : input.sweeps) {
    Json one = results::ToJson(sweep);
    one["document"] = sweep.document();
    sweeps.push_back(std::move(one));
  }
  Json cells = Json::array();
  for (const results::Cell& cell : input.cells.cells)
    cells.push_back(report::CellJson(input.cells, cell));
  return {{"format", 1},
          {"made_at_ms", options.made_at_ms},
          {"pelab", PELAB_VERSION},
          {"source", input.source},
          {"sweeps", std::move(sweeps)},
          {"columns", input.cells.columns},
          {"cells", std::move(cells)},
          {"lacking", report::Lacking(input)},
          {"paper", report::Paper(input)},
          {"curves", report::Curves(input, options.all_seeds)},
          {"head_counts", report::HeadCounts(input)},
          {"heads", report::Heads(input)},
          {"layers", report::Layers(input)},
          {"deposits", report::Deposits(input)},
          {"provenance", report::Provenance(input, options)}};
}

}  // namespace pelab::client
