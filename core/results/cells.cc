#include "core/results/cells.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "core/base/strings.h"
#include "core/results/fields.h"
#include "core/results/shown.h"

namespace pelab::results {
namespace {

using render::Json;

// Assigns each job to its group.
class Places {
 public:
  // `whole`: jobs that differ only in their seed share a group. Otherwise, jobs with the same
  // values of `columns` share one.
  Places(const FieldTable& fields, const std::vector<std::string>& columns, bool whole)
      : fields_(fields), columns_(columns), whole_(whole) {}

  // Groups are numbered in the order of the first request for them.
  std::size_t Of(std::size_t job) {
    if (!whole_) return Number(Join(ValuesOf(job), "\n"));
    const auto [known, is_new] = by_fields_.emplace(&fields_.Of(job), 0);
    if (is_new) known->second = Number(IdentityOf(*known->first));
    return known->second;
  }
  std::vector<std::string> ValuesOf(std::size_t job) const {
    std::vector<std::string> values;
    for (const std::string& column : columns_) {
      values.push_back(whole_ ? ValueOf(fields_.Of(job), column)
                              : fields_.StoredValue(job, column));
    }
    return values;
  }

 private:
  std::size_t Number(const std::string& identity) {
    return numbers_.emplace(identity, numbers_.size()).first->second;
  }

  const FieldTable& fields_;
  const std::vector<std::string>& columns_;
  const bool whole_;
  std::map<std::string, std::size_t> numbers_;
  std::map<const Fields*, std::size_t> by_fields_;
};

}  // namespace

void ClipShare(stats::SeedSummary& summary, double least) {
  if (summary.low) summary.low = std::max(*summary.low, least);
  if (summary.high) summary.high = std::min(*summary.high, 1.0);
}

std::string Cell::Label() const { return Join(shown, " "); }

bool CellTable::complete() const {
  return std::all_of(cells.begin(), cells.end(),
                     [](const Cell& c) { return c.summary.complete(); });
}

stats::SeedResult ResultOf(const v1::JobRow& row, const Metric& metric,
                           const MetricValues* values) {
  using State = stats::SeedResult::State;
  if (row.state() == v1::JOB_STATE_FAILED) return {State::kFailed, 0};
  if (row.state() == v1::JOB_STATE_CANCELLED) return {State::kCancelled, 0};
  // A job that is queued again for an analysis keeps the results of its training.
  const bool ended = row.state() == v1::JOB_STATE_SUCCEEDED || row.trained();
  if (!ended) return {State::kMissing, 0};
  if (metric.source == Metric::Source::kJob) {
    const std::optional<double> value = MetricOf(row, metric);
    return value ? stats::SeedResult{State::kDone, *value} : stats::SeedResult{State::kMissing, 0};
  }
  if (values == nullptr) return {State::kMissing, 0};
  const auto found = values->find(row.job_id());
  if (found == values->end()) {
    if (metric.source != Metric::Source::kEpochs) return {State::kMissing, 0};
    return {State::kCensored, static_cast<double>(row.epochs_done() - 1)};
  }
  return {State::kDone, found->second};
}

absl::StatusOr<CellTable> BuildCells(const JobList& jobs, const std::string& metric,
                                     const std::vector<std::string>& group_by) {
  absl::StatusOr<Metric> parsed = ParseMetric(metric);
  if (!parsed.ok()) return parsed.status();
  return BuildCells(jobs, {.metric = *parsed, .group_by = group_by});
}

absl::StatusOr<CellTable> BuildCells(const JobList& jobs, const CellOptions& options) {
  const std::vector<std::string>& group_by = options.group_by;
  if (absl::Status status = CheckFieldNames(group_by); !status.ok()) return status;
  const FieldTable fields(jobs);
  CellTable table;
  table.metric = options.metric;
  table.interval = options.interval;
  table.columns = group_by.empty() ? TellingColumns(fields.distinct()) : group_by;
  Places places(fields, table.columns, group_by.empty());
  std::vector<std::vector<const Fields*>> members;  // by group, without adjacent repeats
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    const std::size_t c = places.Of(i);
    if (c == table.cells.size()) {
      table.cells.push_back(
          {.values = places.ValuesOf(i), .jobs = {}, .summary = {}, .results = {}});
      members.emplace_back();
    }
    table.cells[c].jobs.push_back(jobs.rows()[i]);
    const Fields* its = &fields.Of(i);
    if (members[c].empty() || members[c].back() != its) members[c].push_back(its);
  }
  std::set<std::string> mixed;
  std::vector<std::vector<stats::SeedResult>> results(table.cells.size());
  for (std::size_t c = 0; c < table.cells.size(); ++c) {
    for (const v1::JobRow& job : table.cells[c].jobs) {
      results[c].push_back(ResultOf(job, options.metric, options.values));
    }
    if (!group_by.empty()) mixed.merge(MixedFields(members[c]));
  }
  auto summaries = stats::SummarizeAll(results, options.interval);
  for (std::size_t c = 0; c < summaries.size(); ++c) {
    if (IsShare(options.metric)) ClipShare(summaries[c]);
    table.cells[c].summary = summaries[c];
    table.cells[c].results = std::move(results[c]);
  }
  table.mixed.assign(mixed.begin(), mixed.end());
  ShowShortHashes(table.cells);
  return table;
}

void OneSeedEach(CellTable& table) {
  std::vector<Cell> cells;
  for (const Cell& cell : table.cells) {
    for (const v1::JobRow& job : cell.jobs) {
      const std::vector results = {ResultOf(job, table.metric)};
      Cell one{cell.values, {job}, stats::Summarize(results), results};
      one.shown = cell.shown;
      for (std::vector<std::string>* values : {&one.values, &one.shown}) {
        values->push_back(Concat("seed ", job.seed()));
      }
      cells.push_back(std::move(one));
    }
  }
  table.columns.emplace_back("seed");
  table.cells = std::move(cells);
}

std::string IntervalName(stats::IntervalKind kind) {
  return kind == stats::IntervalKind::kStudentT ? "t" : "bootstrap";
}

std::string SeedsLabel(std::size_t with, std::size_t of) {
  if (of == 1) return "";
  if (with == of) return Concat("mean of ", of, " seeds");
  return Concat("mean of ", with, " of ", of, " seeds");
}

std::string MissingText(const stats::SeedSummary& summary) {
  if (summary.complete()) return "complete";
  std::vector<std::string> parts;
  if (summary.missing > 0) parts.push_back(Concat(summary.missing, " missing"));
  if (summary.failed > 0) parts.push_back(Concat(summary.failed, " failed"));
  if (summary.cancelled > 0) parts.push_back(Concat(summary.cancelled, " cancelled"));
  return Join(parts, ", ");
}

int DivergedOf(const Cell& cell) {
  return static_cast<int>(std::count_if(cell.jobs.begin(), cell.jobs.end(),
                                        [](const v1::JobRow& job) { return job.diverged(); }));
}

std::string DivergedText(const CellTable& table) {
  std::vector<std::string> parts;
  for (const Cell& cell : table.cells) {
    const int diverged = DivergedOf(cell);
    if (diverged > 0) {
      parts.push_back(Concat(cell.Label(), " ", diverged, " of ", cell.jobs.size()));
    }
  }
  return parts.empty() ? "" : "diverged: " + Join(parts, ", ");
}

bool IsOpen(const Cell& cell) {
  return std::any_of(cell.jobs.begin(), cell.jobs.end(), [](const v1::JobRow& job) {
    return !job.trained() &&
           (job.state() == v1::JOB_STATE_QUEUED || job.state() == v1::JOB_STATE_ASSIGNED ||
            job.state() == v1::JOB_STATE_RUNNING);
  });
}

render::Json ToJson(const CellTable& table, const Cell& cell) {
  const auto or_null = [](std::optional<double> value) {
    return value ? Json(*value) : Json(nullptr);
  };
  Json json;
  for (std::size_t i = 0; i < table.columns.size(); ++i) json[table.columns[i]] = cell.values[i];
  json["metric"] = table.metric.name;
  json["n"] = cell.summary.n;
  json["missing"] = cell.summary.missing;
  json["failed"] = cell.summary.failed;
  json["complete"] = cell.summary.complete();
  json["mean"] = or_null(cell.summary.mean);
  json["sd"] = or_null(cell.summary.sd);
  json["half_width"] = or_null(cell.summary.half_width);
  Json seeds = Json::array(), ids = Json::array();
  for (const v1::JobRow& job : cell.jobs) {
    seeds.push_back(job.seed());
    ids.push_back(job.job_id());
  }
  json["seeds"] = seeds;
  json["job_ids"] = ids;
  json["interval"] = IntervalName(table.interval);
  json["low"] = or_null(cell.summary.low);
  json["high"] = or_null(cell.summary.high);
  json["cancelled"] = cell.summary.cancelled;
  const bool epochs = table.metric.source == Metric::Source::kEpochs;
  json["not_reached"] = cell.summary.censored;
  json["median"] = epochs ? or_null(cell.summary.median) : Json(nullptr);
  json["median_above"] = epochs ? or_null(cell.summary.median_above) : Json(nullptr);
  json["diverged"] = DivergedOf(cell);
  return json;
}

std::vector<std::string> CellColumns(const CellTable& table) {
  std::vector<std::string> columns = table.columns;
  for (const char* name : {"metric", "n", "missing", "failed", "complete", "mean", "sd",
                           "half_width", "seeds", "interval", "low", "high", "cancelled",
                           "not_reached", "median", "median_above", "diverged"}) {
    columns.emplace_back(name);
  }
  return columns;
}

}  // namespace pelab::results
