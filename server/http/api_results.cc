// Results of jobs: groups, curves, ablations, logs.
#include <algorithm>

#include "core/base/status.h"
#include "core/base/strings.h"
#include "core/results/ablation.h"
#include "core/results/cells.h"
#include "core/results/curves.h"
#include "core/results/deposits.h"
#include "core/results/fields.h"
#include "core/results/metrics.h"
#include "core/results/rows.h"
#include "core/results/shortcuts.h"
#include "server/http/api.h"
#include "server/http/lists.h"
#include "server/http/log_text.h"
#include "server/http/unknown_values.h"

namespace pelab::http {
namespace {

using render::Json;

// Jobs and the groups that they form. The groups refer to the jobs.
struct Together {
  results::JobList jobs;
  results::CellTable table;
};

absl::StatusOr<Together> PutTogether(db::Reader& reader, const v1::JobFilter& filter,
                                     const Query& query, const std::string& metric) {
  PELAB_ASSIGN_OR_RETURN(const auto group_by, query.List("group_by"));
  PELAB_RETURN_IF_ERROR(Annotate(results::CheckFieldNames(group_by), "group_by"));
  Together together;
  PELAB_ASSIGN_OR_RETURN(together.jobs, AllJobs(reader, filter));
  PELAB_ASSIGN_OR_RETURN(together.table, results::BuildCells(together.jobs, metric, group_by));
  return together;
}

// A group's columns with their values, and the numbers of its jobs.
Json CellName(const results::CellTable& table, const results::Cell& cell) {
  Json json = Json::object();
  for (std::size_t i = 0; i < table.columns.size(); ++i) json[table.columns[i]] = cell.values[i];
  Json ids = Json::array();
  for (const v1::JobRow& job : cell.jobs) ids.push_back(job.job_id());
  json["job_ids"] = std::move(ids);
  return json;
}

template <typename T>
Json OrNull(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

Json PointsJson(const results::MeanCurve& curve) {
  Json epochs = Json::array();
  Json means = Json::array();
  Json widths = Json::array();
  for (const results::CurvePoint& point : curve.points) {
    epochs.push_back(point.epoch);
    means.push_back(point.mean);
    widths.push_back(OrNull(point.half_width));
  }
  return {
      {"epoch", std::move(epochs)}, {"mean", std::move(means)}, {"half_width", std::move(widths)}};
}

// Sets "drops" to the mean drops by head, and "counts" to whether a head's drop counts
// (results::EntryDrop) in at least one seed.
Json DropsJson(const results::MeanAblation& mean) {
  Json json = results::ToJson(mean);
  json["drops"] = json["by_index"]["drops"];
  json["counts"] = Json::array();
  for (const Json& layer : json["by_index"]["counts"]) {
    Json row = Json::array();
    for (const Json& count : layer) row.push_back(count.get<int>() > 0);
    json["counts"].push_back(std::move(row));
  }
  json["lead_texts"] = Json::array();
  for (const results::LayerLead& lead : mean.leads) {
    json["lead_texts"].push_back(results::LeadText(lead));
  }
  for (const char* name : {"job_ids", "variant"}) json.erase(name);
  return json;
}

absl::StatusOr<results::Variants> AllVariants(db::Reader& reader, const v1::JobFilter& filter) {
  v1::ListAnalysesRequest request;
  *request.mutable_filter() = filter;
  request.set_name("head_ablation");
  request.mutable_page()->set_limit(db::kMaxPage);
  std::vector<v1::AnalysisRow> rows;
  do {
    PELAB_ASSIGN_OR_RETURN(const v1::ListAnalysesResponse page, reader.ListAnalyses(request));
    request.mutable_page()->set_after(page.next());
    rows.insert(rows.end(), page.rows().begin(), page.rows().end());
  } while (!request.page().after().empty());
  return results::VariantsOf(rows);
}

// A page of one job's rows as {"<name>": […], "next": …}.
template <typename Request, typename Response>
absl::StatusOr<Json> JobPage(db::Reader& reader,
                             absl::StatusOr<Response> (db::RowReader::*list)(const Request&),
                             Request request, const std::string& id, const Query& query,
                             const std::string& name) {
  PELAB_ASSIGN_OR_RETURN(const std::int64_t limit,
                         query.Number("limit", db::kMaxPage, 1, db::kMaxPage));
  request.mutable_filter()->add_jobs(id);
  request.mutable_page()->set_after(query.Text("after"));
  request.mutable_page()->set_limit(static_cast<int>(limit));
  PELAB_ASSIGN_OR_RETURN(const Response page, (reader.*list)(request));
  return Json{{name, results::ToJsonArray(page.rows())},
              {"next", page.next().empty() ? Json(nullptr) : Json(page.next())}};
}

// Other metrics need curves or deposit indices, which are not read here.
absl::Status CheckOfJobs(const std::string& name) {
  const absl::StatusOr<results::Metric> metric = results::ParseMetric(name);
  if (!metric.ok()) return Annotate(metric.status(), "metric");
  if (metric->source == results::Metric::Source::kJob) return absl::OkStatus();
  return absl::InvalidArgumentError(
      Concat("metric: ", name,
             " is no number of a job's row; ask for it with `pelab results --metric ", name, "`"));
}

}  // namespace

absl::StatusOr<Json> Api::Cells(const std::string& id, const Query& query) {
  PELAB_ASSIGN_OR_RETURN(const v1::JobFilter filter, ReadFilter(id, query));
  const std::string metric = query.has("metric") ? query.Text("metric") : "test_accuracy";
  PELAB_RETURN_IF_ERROR(CheckOfJobs(metric));
  PELAB_ASSIGN_OR_RETURN(const Together all, PutTogether(reader_, filter, query, metric));
  Json cells = Json::array();
  for (const results::Cell& cell : all.table.cells) {
    cells.push_back(results::ToJson(all.table, cell));
  }
  Json json = {{"metric", metric},
               {"columns", all.table.columns},
               {"mixed", all.table.mixed},
               {"complete", all.table.complete()},
               {"cells", std::move(cells)}};
  PELAB_RETURN_IF_ERROR(NoteUnknownValues(reader_, filter, all.jobs.size(), json));
  return json;
}

absl::StatusOr<Json> Api::Limits(const std::string& id, const Query& query) {
  PELAB_ASSIGN_OR_RETURN(const v1::JobFilter filter, ReadFilter(id, query));
  PELAB_ASSIGN_OR_RETURN(const results::JobList jobs, AllJobs(reader_, filter));
  Json json = {{"text", results::ShortcutsText(jobs)}};
  PELAB_RETURN_IF_ERROR(NoteUnknownValues(reader_, filter, jobs.size(), json));
  return json;
}

absl::StatusOr<Json> Api::MeanCurves(const std::string& id, const Query& query) {
  PELAB_ASSIGN_OR_RETURN(const v1::JobFilter filter, ReadFilter(id, query));
  std::vector<std::string> metrics = results::CurveMetrics();
  std::stable_partition(metrics.begin(), metrics.end(),
                        [](const std::string& name) { return name == "test_accuracy"; });
  PELAB_ASSIGN_OR_RETURN(const std::string metric, query.OneOf("metric", metrics));
  PELAB_ASSIGN_OR_RETURN(const Together all, PutTogether(reader_, filter, query, "test_accuracy"));
  results::MeanCurves means(all.table, metric);
  PELAB_RETURN_IF_ERROR(ForEachPage(reader_, &db::Reader::ListCurves, filter,
                                    [&means](const auto& page) { means.Add(page.rows()); }));
  const std::vector<results::MeanCurve> curves = means.Curves();
  Json cells = Json::array();
  for (std::size_t i = 0; i < curves.size(); ++i) {
    Json cell = CellName(all.table, all.table.cells[i]);
    cell["seeds"] = curves[i].seeds;
    cell["points"] = PointsJson(curves[i]);
    cells.push_back(std::move(cell));
  }
  Json json = {{"metric", metric}, {"columns", all.table.columns}, {"cells", std::move(cells)}};
  PELAB_RETURN_IF_ERROR(NoteUnknownValues(reader_, filter, all.jobs.size(), json));
  return json;
}

absl::StatusOr<Json> Api::MeanAblations(const std::string& id, const Query& query) {
  PELAB_ASSIGN_OR_RETURN(const v1::JobFilter filter, ReadFilter(id, query));
  PELAB_ASSIGN_OR_RETURN(const std::string name,
                         query.OneOf("metric", {"accuracy_drop", "nll_drop", "normalised_drop"}));
  PELAB_ASSIGN_OR_RETURN(const results::AblationMetric metric, results::ParseAblationMetric(name));
  PELAB_ASSIGN_OR_RETURN(const Together all, PutTogether(reader_, filter, query, "test_accuracy"));
  PELAB_ASSIGN_OR_RETURN(const results::Variants variants, AllVariants(reader_, filter));
  PELAB_ASSIGN_OR_RETURN(const auto rows, AllRows<v1::HeadAblationRow>(
                                              reader_, &db::Reader::ListHeadAblations, filter));
  Json ablations = Json::array();
  for (const results::MeanAblation& mean :
       results::MeanAblations(all.table, rows, variants, metric)) {
    Json json = CellName(all.table, *mean.cell);
    json["analysis"] = results::Describe(mean.variant);
    json["version"] = mean.variant.version;
    json["seeds"] = mean.seeds.size();
    json.update(DropsJson(mean));
    ablations.push_back(std::move(json));
  }
  Json answer = {
      {"metric", name}, {"columns", all.table.columns}, {"ablations", std::move(ablations)}};
  PELAB_RETURN_IF_ERROR(NoteUnknownValues(reader_, filter, all.jobs.size(), answer));
  return answer;
}

absl::StatusOr<Json> Api::Deposits(const std::string& id, const Query& query) {
  PELAB_ASSIGN_OR_RETURN(const v1::JobFilter filter, ReadFilter(id, query));
  PELAB_ASSIGN_OR_RETURN(const std::int64_t by_layer, query.Number("by_layer", 0, 0, 1));
  PELAB_ASSIGN_OR_RETURN(const Together all, PutTogether(reader_, filter, query, "test_accuracy"));
  PELAB_ASSIGN_OR_RETURN(const results::Variants variants, AllVariants(reader_, filter));
  PELAB_ASSIGN_OR_RETURN(const auto rows,
                         AllRows<v1::DepositRow>(reader_, &db::Reader::ListDeposits, filter));
  Json deposits = Json::array();
  for (const results::DepositGroup& group :
       results::DepositGroups(all.table, rows, variants, by_layer != 0)) {
    deposits.push_back(results::ToJson(all.table, group));
  }
  Json json = {{"columns", all.table.columns}, {"deposits", std::move(deposits)}};
  PELAB_RETURN_IF_ERROR(NoteUnknownValues(reader_, filter, all.jobs.size(), json));
  return json;
}

absl::StatusOr<Json> Api::Curve(const std::string& id, const Query& query) {
  return JobPage(reader_, &db::Reader::ListCurves, v1::ListCurvesRequest(), id, query, "curve");
}

absl::StatusOr<Json> Api::Ablations(const std::string& id, const Query& query) {
  return JobPage(reader_, &db::Reader::ListHeadAblations, v1::ListHeadAblationsRequest(), id, query,
                 "ablations");
}

absl::StatusOr<Json> Api::JobDeposits(const std::string& id, const Query& query) {
  return JobPage(reader_, &db::Reader::ListDeposits, v1::ListDepositsRequest(), id, query,
                 "deposits");
}

absl::StatusOr<Json> Api::Analyses(const std::string& id, const Query& query) {
  v1::ListAnalysesRequest request;
  request.set_name(query.Text("name"));
  return JobPage(reader_, &db::Reader::ListAnalyses, std::move(request), id, query, "analyses");
}

absl::StatusOr<Json> Api::Log(const std::string& id, const Query& query) {
  PELAB_ASSIGN_OR_RETURN(const std::int64_t attempt, query.Number("attempt", 0, 0, 1'000'000));
  PELAB_ASSIGN_OR_RETURN(const std::int64_t offset, query.Number("offset", 0, 0, INT64_MAX / 2));
  PELAB_ASSIGN_OR_RETURN(const std::int64_t tail,
                         query.Number("tail", kDefaultTail, 1, kLargestTail));
  PELAB_ASSIGN_OR_RETURN(const auto parts, reader_.ReadLog(id, static_cast<int>(attempt),
                                                           static_cast<std::uint64_t>(offset)));
  return LogJson(parts, static_cast<std::uint64_t>(offset), static_cast<std::uint64_t>(tail));
}

}  // namespace pelab::http
