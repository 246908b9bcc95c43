#include "client/report/html_data.h"

#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "core/base/strings.h"
#include "core/results/deposits.h"
#include "core/results/rows.h"
#include "core/results/shortcuts.h"
#include "core/results/split_scores.h"
#include "core/stats/seeds.h"

namespace pelab::client {
namespace report {
namespace {

using render::Json;

// The group's value in this column; empty if there is no such column.
std::string ValueIn(const results::CellTable& cells, const results::Cell& cell,
                    const std::string& column) {
  for (std::size_t i = 0; i < cells.columns.size(); ++i) {
    if (cells.columns[i] == column) return cell.shown[i];
  }
  return "";
}

// {"mean", "sd", "half_width", "n", "of", "missing", "failed", "cancelled"} over the group's done
// seeds.
Json Summary(const results::Cell& cell,
             const std::function<std::optional<double>(const v1::JobRow&)>& of) {
  std::vector<stats::SeedResult> results;
  for (const v1::JobRow& job : cell.jobs) {
    const std::optional<double> value = IsDone(job) ? of(job) : std::nullopt;
    results.push_back(value ? stats::SeedResult{stats::SeedResult::State::kDone, *value}
                            : stats::SeedResult{});
  }
  const stats::SeedSummary summary = stats::Summarize(results);
  return {{"mean", render::OrNull(summary.mean)},
          {"sd", render::OrNull(summary.sd)},
          {"half_width", render::OrNull(summary.half_width)},
          {"n", summary.n},
          {"of", cell.jobs.size()},
          {"missing", cell.summary.missing},
          {"failed", cell.summary.failed},
          {"cancelled", cell.summary.cancelled}};
}

std::optional<double> If(bool has, double value) {
  return has ? std::optional(value) : std::nullopt;
}

// {"accuracy", "rule", "ceiling"}, the last null if it is not known; null for a spec of another
// version.
Json ShortcutJson(const ReportInput& input, const results::Cell& cell) {
  const auto limits = results::LimitsOf(input.jobs, cell.jobs.front());
  if (!limits) return nullptr;
  return {{"accuracy", limits->shortcut.accuracy},
          {"rule", std::string(limits->shortcut.rule)},
          {"ceiling", render::OrNull(limits->ceiling)}};
}

Json CellJson(const ReportInput& input, const results::Cell& cell) {
  const results::CellTable& cells = input.cells;
  const CellName name = NameOf(cells, cell);
  Json values = Json::object();
  for (std::size_t i = 0; i < cells.columns.size(); ++i) values[cells.columns[i]] = cell.shown[i];
  Json jobs = Json::array();
  for (const v1::JobRow& job : cell.jobs) {
    jobs.push_back(
        {{"job_id", job.job_id()},
         {"seed", job.seed()},
         {"done", IsDone(job)},
         {"test_accuracy", render::OrNull(If(job.has_test_accuracy(), job.test_accuracy()))}});
  }
  return {{"label", cell.Label()},
          {"short", name.label},
          {"group", name.group},
          {"pe", cell.jobs.front().pe()},
          {"pe_label", cell.jobs.front().pe_label()},
          {"own", name.own},
          {"axis", name.axis},
          {"task", name.task},
          {"protocol", cell.jobs.front().protocol()},
          {"values", std::move(values)},
          {"complete", cell.summary.complete()},
          {"diverged", results::DivergedOf(cell)},
          {"shortcut", ShortcutJson(input, cell)},
          {"test", TestAccuracy(cell)},
          {"train", Summary(cell,
                            [](const auto& job) {
                              return If(job.has_train_accuracy(), job.train_accuracy());
                            })},
          {"fit", Summary(cell,
                          [](const auto& job) {
                            return If(job.has_train_eval_accuracy(), job.train_eval_accuracy());
                          })},
          {"best", Summary(cell,
                           [](const auto& job) {
                             return If(job.has_best_test_accuracy(), job.best_test_accuracy());
                           })},
          {"gap", Summary(cell,
                          [](const auto& job) {
                            return If(job.has_train_eval_accuracy() && job.has_test_accuracy(),
                                      job.train_eval_accuracy() - job.test_accuracy());
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
  std::vector<std::string> words, own, axis;
  for (std::size_t i = 0; i < cells.columns.size(); ++i) {
    const std::string& column = cells.columns[i];
    if (column == "task" || column == "protocol" || cell.shown[i] == "-") continue;
    words.push_back(column == "pe" ? cell.shown[i] : Concat(column, "=", cell.shown[i]));
    if (column != "pe") (column.starts_with("pe.") ? own : axis).push_back(words.back());
  }
  const v1::JobRow& job = cell.jobs.front();
  name.encoding = job.pe();
  if (job.pe_label() != job.pe()) own.insert(own.begin(), job.pe_label());
  name.label = Join(words, " ");
  name.own = Join(own, " ");
  name.axis = Join(axis, " ");
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

Json Splits(const ReportInput& input) {
  const results::SplitScores scores = results::CollectSplitScores(input.splits);
  Json rows = Json::array();
  for (std::size_t c = 0; c < input.cells.cells.size(); ++c) {
    for (const std::string& split : scores.names) {
      std::vector<double> chances;
      const auto accuracy_of = [&](const v1::JobRow& job) -> std::optional<double> {
        const results::SplitScore* score = scores.Find(job.job_id(), split);
        if (score == nullptr) return std::nullopt;
        chances.push_back(score->chance);
        return score->accuracy();
      };
      Json accuracy = Summary(input.cells.cells[c], accuracy_of);
      if (chances.empty()) continue;
      rows.push_back({{"cell", c},
                      {"split", split},
                      {"accuracy", std::move(accuracy)},
                      {"chance", stats::Mean(chances)}});
    }
  }
  return rows;
}

Json TestAccuracy(const results::Cell& cell) {
  return Summary(cell,
                 [](const auto& job) { return If(job.has_test_accuracy(), job.test_accuracy()); });
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
    cells.push_back(report::CellJson(input, cell));
  return {{"format", 1},
          {"made_at_ms", options.made_at_ms},
          {"pelab", PELAB_VERSION},
          {"source", input.source},
          {"sweeps", std::move(sweeps)},
          {"columns", input.cells.columns},
          {"cells", std::move(cells)},
          {"lacking", report::Lacking(input)},
          {"set_up", report::SetUp(input)},
          {"comparisons", report::Comparisons(input)},
          {"epochs_to_half", report::EpochsToHalf(input)},
          {"splits", report::Splits(input)},
          {"sheets", report::Sheets(input)},
          {"curves", report::Curves(input, options.all_seeds)},
          {"head_counts", report::HeadCounts(input)},
          {"heads", report::Heads(input)},
          {"layers", report::Layers(input)},
          {"deposits", report::Deposits(input)},
          {"provenance", report::Provenance(input, options)}};
}

}  // namespace pelab::client
