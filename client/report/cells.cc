#include "client/report/cells.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "core/catalog/catalog.h"
#include "core/views/text.h"

namespace pelab::client {
namespace {

using render::Json;
using Fields = std::map<std::string, std::string>;  // "train.lr" -> "0.0001"

std::optional<double> MetricOf(const v1::JobRow& row, const std::string& metric) {
  const auto real = [](bool has, double value) {
    return has ? std::optional(value) : std::nullopt;
  };
  if (metric == "test_accuracy") return real(row.has_test_accuracy(), row.test_accuracy());
  if (metric == "train_accuracy") return real(row.has_train_accuracy(), row.train_accuracy());
  if (metric == "best_test_accuracy")
    return real(row.has_best_test_accuracy(), row.best_test_accuracy());
  if (metric == "wall_seconds") return real(row.has_wall_seconds(), row.wall_seconds());
  return std::nullopt;
}

void Flatten(const Json& value, const std::string& prefix, Fields& out) {
  if (!value.is_object()) {
    out[prefix] = value.is_string() ? value.get<std::string>()
                                    : value.dump(-1, ' ', false, Json::error_handler_t::replace);
    return;
  }
  for (const auto& [name, member] : value.items()) {
    Flatten(member, prefix.empty() ? name : Concat(prefix, ".", name), out);
  }
}

// Every field of the spec, and the columns that may be grouped by, under their names.
Fields FieldsOf(const v1::JobRow& row) {
  Fields fields;
  const Json spec = Json::parse(row.spec_json(), nullptr, /*allow_exceptions=*/false);
  if (spec.is_object()) Flatten(spec, "", fields);
  fields["pe"] = row.pe_label();
  fields["task"] = row.task();
  fields["protocol"] = row.protocol();
  fields["seed"] = Concat(row.seed());
  fields["device"] = row.device();
  return fields;
}

const std::set<std::string>& ColumnFields() {
  static const auto& names =
      *new std::set<std::string>{"pe", "pe_label", "task", "protocol", "seed", "device"};
  return names;
}

bool IsKnownField(const std::string& name) {
  if (ColumnFields().count(name) > 0) return true;
  return std::any_of(catalog::Fields().begin(), catalog::Fields().end(),
                     [&](const catalog::Field& field) { return field.name == name; });
}

// What makes two jobs replicates of each other: everything but the seed and where it ran.
std::string IdentityOf(Fields fields) {
  for (const char* name : {"seed", "device", "protocol", "pe_label"}) fields.erase(name);
  std::string identity;
  for (const auto& [name, value] : fields) identity += Concat(name, "=", value, "\n");
  return identity;
}

// Seeds of parts of a job (task.data_seed) follow the job's own by default: replicates differ in
// them too. A job is taken to follow where its value is its own seed and no replicate with another
// seed has that value.
void MarkFollowedSeeds(std::vector<Fields>& all) {
  const auto is_part_seed = [](const std::string& name) { return name.ends_with("_seed"); };
  std::map<std::string, std::set<std::string>> seeds;  // replicates with one value -> their seeds
  const auto group = [&](const Fields& fields, const std::string& name, const std::string& value) {
    Fields rest = fields;
    std::erase_if(rest, [&](const auto& field) { return is_part_seed(field.first); });
    return Concat(IdentityOf(rest), name, "=", value);
  };
  std::vector<std::vector<std::pair<std::string, std::string>>> candidates(
      all.size());  // (name, group)
  for (std::size_t i = 0; i < all.size(); ++i) {
    for (const auto& [name, value] : all[i]) {
      if (!is_part_seed(name)) continue;
      const std::string key = group(all[i], name, value);
      seeds[key].insert(all[i].at("seed"));
      if (value == all[i].at("seed")) candidates[i].emplace_back(name, key);
    }
  }
  for (std::size_t i = 0; i < all.size(); ++i) {
    for (const auto& [name, key] : candidates[i]) {
      if (seeds[key].size() == 1) all[i][name] = "seed";
    }
  }
}

std::string ValueOf(const Fields& fields, const std::string& name) {
  const auto found = fields.find(name == "pe_label" ? "pe" : name);
  return found == fields.end() ? "-" : found->second;
}

// Names of fields (beside `ignored`) that do not have one value over all of `rows`.
std::set<std::string> Differing(const std::vector<const Fields*>& rows,
                                const std::set<std::string>& ignored) {
  std::set<std::string> names, differing;
  for (const Fields* row : rows) {
    for (const auto& [name, value] : *row) names.insert(name);
  }
  for (const std::string& name : names) {
    if (ignored.count(name) > 0) continue;
    const std::string first = ValueOf(*rows.front(), name);
    const auto differs = [&](const Fields* row) { return ValueOf(*row, name) != first; };
    if (std::any_of(rows.begin(), rows.end(), differs)) differing.insert(name);
  }
  return differing;
}

const std::set<std::string> kNotColumns = {"seed", "device",  "pe",       "pe_label",
                                           "task", "pe.name", "task.name"};

// "pe", "task", and what tells cells apart that agree in these.
std::vector<std::string> DefaultColumns(const std::vector<Fields>& all) {
  std::map<std::pair<std::string, std::string>, std::vector<const Fields*>> by_name;
  for (const Fields& fields : all)
    by_name[{ValueOf(fields, "pe"), ValueOf(fields, "task")}].push_back(&fields);
  std::set<std::string> extra;
  for (const auto& [name, rows] : by_name) extra.merge(Differing(rows, kNotColumns));
  std::vector<std::string> columns = {"pe", "task"};
  columns.insert(columns.end(), extra.begin(), extra.end());
  return columns;
}

stats::SeedResult Result(const v1::JobRow& row, const std::string& metric) {
  using State = stats::SeedResult::State;
  if (row.state() == v1::JOB_STATE_FAILED || row.state() == v1::JOB_STATE_CANCELLED)
    return {State::kFailed, 0};
  const std::optional<double> value = MetricOf(row, metric);
  if (row.state() != v1::JOB_STATE_SUCCEEDED || !value) return {State::kMissing, 0};
  return {State::kDone, *value};
}

absl::Status CheckNames(const std::string& metric, const std::vector<std::string>& group_by) {
  if (std::find(Metrics().begin(), Metrics().end(), metric) == Metrics().end()) {
    return absl::InvalidArgumentError(
        Concat("--metric: unknown metric \"", metric, "\"; known: ", Join(Metrics(), ", ")));
  }
  for (const std::string& name : group_by) {
    if (IsKnownField(name)) continue;
    std::vector<std::string_view> known(ColumnFields().begin(), ColumnFields().end());
    for (const catalog::Field& field : catalog::Fields()) known.push_back(field.name);
    const std::string_view near = catalog::DidYouMean(name, known);
    return absl::InvalidArgumentError(Concat("--group-by: unknown field \"", name, "\"",
                                             near.empty() ? "" : "; did you mean ", near,
                                             "; known: ", Join(ColumnFields(), ", "),
                                             " and the fields that `pelab catalog field` lists"));
  }
  return absl::OkStatus();
}

}  // namespace

std::string Cell::Label() const { return Join(values, " "); }

bool CellTable::complete() const {
  return std::all_of(cells.begin(), cells.end(),
                     [](const Cell& c) { return c.summary.complete(); });
}

const std::vector<std::string>& Metrics() {
  static const auto& names = *new std::vector<std::string>{"test_accuracy", "best_test_accuracy",
                                                           "train_accuracy", "wall_seconds"};
  return names;
}

absl::StatusOr<CellTable> BuildCells(const std::vector<v1::JobRow>& jobs, const std::string& metric,
                                     const std::vector<std::string>& group_by) {
  if (absl::Status status = CheckNames(metric, group_by); !status.ok()) return status;
  std::vector<Fields> fields;
  for (const v1::JobRow& job : jobs) fields.push_back(FieldsOf(job));
  const std::vector<Fields> as_stored = fields;
  MarkFollowedSeeds(fields);
  CellTable table;
  table.metric = metric;
  table.columns = group_by.empty() ? DefaultColumns(fields) : group_by;
  std::map<std::string, std::size_t> index;
  std::vector<std::vector<const Fields*>> members;
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    std::vector<std::string> values;
    for (const std::string& column : table.columns) {
      values.push_back(ValueOf(group_by.empty() ? fields[i] : as_stored[i], column));
    }
    const std::string identity = group_by.empty() ? IdentityOf(fields[i]) : Join(values, "\n");
    const auto [at, is_new] = index.emplace(identity, table.cells.size());
    if (is_new) {
      table.cells.push_back({values, {}, {}});
      members.emplace_back();
    }
    table.cells[at->second].jobs.push_back(jobs[i]);
    members[at->second].push_back(&fields[i]);
  }
  std::set<std::string> mixed;
  for (std::size_t c = 0; c < table.cells.size(); ++c) {
    std::vector<stats::SeedResult> results;
    for (const v1::JobRow& job : table.cells[c].jobs) results.push_back(Result(job, metric));
    table.cells[c].summary = stats::Summarise(results);
    if (!group_by.empty())
      mixed.merge(Differing(members[c], {"seed", "device", "pe.name", "task.name"}));
  }
  table.mixed.assign(mixed.begin(), mixed.end());
  return table;
}

render::Json ToJson(const CellTable& table, const Cell& cell) {
  const auto or_null = [](std::optional<double> value) {
    return value ? Json(*value) : Json(nullptr);
  };
  Json json;
  for (std::size_t i = 0; i < table.columns.size(); ++i) json[table.columns[i]] = cell.values[i];
  json["metric"] = table.metric;
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
  return json;
}

std::vector<std::string> CellColumns(const CellTable& table) {
  std::vector<std::string> columns = table.columns;
  for (const char* name :
       {"metric", "n", "missing", "failed", "complete", "mean", "sd", "half_width", "seeds"}) {
    columns.emplace_back(name);
  }
  return columns;
}

}  // namespace pelab::client
