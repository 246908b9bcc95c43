// The setup of a report's experiments: model, tasks, encodings, protocols, and the fields that
// vary.
#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "client/report/html_data.h"
#include "core/base/json_text.h"
#include "core/base/strings.h"
#include "core/catalog/catalog.h"
#include "core/catalog/protocol_values.h"
#include "core/experiment/canonical_json.h"
#include "core/experiment/job.h"
#include "core/results/fields.h"

namespace pelab::client::report {
namespace {

using render::Json;
using results::Fields;

// A group with the fields of its first job; its other jobs differ only in the seed.
struct Configured {
  const results::Cell* cell = nullptr;
  const Fields* fields = nullptr;
  std::optional<experiment::Job> job;  // nullopt if this catalog does not know the spec
};

std::vector<Configured> ConfiguredCells(const ReportInput& input, const results::FieldTable& all) {
  std::unordered_map<std::int64_t, std::size_t> index;
  for (std::size_t i = 0; i < input.jobs.size(); ++i) index[input.jobs.rows()[i].job_id()] = i;
  std::vector<Configured> cells;
  for (const results::Cell& cell : input.cells.cells) {
    const v1::JobRow& first = cell.jobs.front();
    cells.push_back({.cell = &cell,
                     .fields = &all.Of(index.at(first.job_id())),
                     .job = experiment::FromCanonicalJson(input.jobs.SpecOf(first)).job});
  }
  return cells;
}

// The distinct values of a field, in the order of the groups.
std::vector<std::string> ValuesOf(const std::vector<Configured>& cells, const std::string& name) {
  std::vector<std::string> values;
  for (const Configured& cell : cells) {
    const auto found = cell.fields->find(name);
    if (found == cell.fields->end()) continue;
    if (std::find(values.begin(), values.end(), found->second) == values.end()) {
      values.push_back(found->second);
    }
  }
  return values;
}

// The protocol's default as text, if the groups have another value; else null.
Json OtherDefault(const std::vector<Configured>& cells, const catalog::Field& field) {
  const std::string name(field.name);
  for (const Configured& cell : cells) {
    if (!cell.job || !cell.job->HasField(name)) continue;
    const catalog::Value usual =
        catalog::DefaultOf(field, cell.cell->jobs.front().protocol(), cell.job->pe, cell.job->task,
                           experiment::WithCoordinates(*cell.job));
    return usual == cell.job->values.at(name) ? Json(nullptr) : Json(catalog::ToText(usual));
  }
  return nullptr;
}

// {"name", "value", "default" (if it differs), "help"} of each field with this prefix that has a
// single value in all groups.
Json SharedFields(const std::vector<Configured>& cells, std::string_view prefix) {
  Json rows = Json::array();
  std::set<std::string> seen;
  for (const catalog::Field& field : catalog::Fields()) {
    if (!field.name.starts_with(prefix) || !seen.insert(std::string(field.name)).second) continue;
    const std::vector<std::string> values = ValuesOf(cells, std::string(field.name));
    if (values.size() != 1) continue;
    rows.push_back({{"name", field.name},
                    {"value", values.front()},
                    {"default", OtherDefault(cells, field)},
                    {"help", field.help}});
  }
  return rows;
}

// Fields of the model and the training that have several values.
Json Varying(const std::vector<Configured>& cells) {
  Json rows = Json::array();
  std::set<std::string> seen;
  for (const catalog::Field& field : catalog::Fields()) {
    const bool own = field.name.starts_with("pe.") || field.name.starts_with("task.");
    if (own || !seen.insert(std::string(field.name)).second) continue;
    const std::vector<std::string> values = ValuesOf(cells, std::string(field.name));
    if (values.size() > 1) rows.push_back({{"name", field.name}, {"values", values}});
  }
  return rows;
}

// Collects the groups by `name`, in the order of first appearance.
template <typename Name>
std::vector<std::pair<std::string, std::vector<Configured>>> By(
    const std::vector<Configured>& cells, const Name& name) {
  std::vector<std::pair<std::string, std::vector<Configured>>> groups;
  for (const Configured& cell : cells) {
    const std::string own = name(cell);
    auto found = std::find_if(groups.begin(), groups.end(),
                              [&](const auto& group) { return group.first == own; });
    if (found == groups.end()) found = groups.insert(groups.end(), {own, {}});
    found->second.push_back(cell);
  }
  return groups;
}

Json About(const catalog::Entry* entry) {
  if (entry == nullptr) return {{"sentence", nullptr}, {"source", nullptr}};
  return {{"sentence", entry->help}, {"source", entry->source}};
}

Json Tasks(const std::vector<Configured>& cells) {
  Json rows = Json::array();
  for (const auto& [task, of_task] :
       By(cells, [](const Configured& c) { return c.cell->jobs.front().task(); })) {
    Json row = {{"name", task}};
    const std::string_view name = experiment::TaskOfLabel(task);
    row.update(About(catalog::FindTask(name)));
    row["fields"] = SharedFields(of_task, "task.");
    Json varies = Json::array();
    for (const catalog::Field& field : catalog::Fields()) {
      if (!field.name.starts_with("task.") || !catalog::IsOf(field, "", name)) continue;
      const std::vector<std::string> values = ValuesOf(of_task, std::string(field.name));
      if (values.size() > 1) varies.push_back({{"name", field.name}, {"values", values}});
    }
    row["varies"] = std::move(varies);
    rows.push_back(std::move(row));
  }
  return rows;
}

// The number of a model's weights, as its trainers reported it; by job.
std::map<std::int64_t, std::int64_t> Parameters(const ReportInput& input) {
  std::map<std::int64_t, std::int64_t> counts;
  for (const v1::AttemptRow& attempt : input.attempts) {
    if (!attempt.has_environment_json()) continue;
    const Json said = ParseJson<Json>(attempt.environment_json());
    if (!said.is_object() || !said.contains("parameters")) continue;
    if (const auto count = IntegerOf<std::int64_t>(said["parameters"])) {
      counts[attempt.job_id()] = *count;
    }
  }
  return counts;
}

Json Encodings(const ReportInput& input, const std::vector<Configured>& cells) {
  const std::map<std::int64_t, std::int64_t> counts = Parameters(input);
  Json rows = Json::array();
  for (const auto& [label, of_encoding] :
       By(cells, [](const Configured& c) { return c.cell->jobs.front().pe_label(); })) {
    const std::string pe = of_encoding.front().cell->jobs.front().pe();
    std::set<std::int64_t> parameters;
    for (const Configured& cell : of_encoding) {
      for (const v1::JobRow& job : cell.cell->jobs) {
        const auto found = counts.find(job.job_id());
        if (found != counts.end()) parameters.insert(found->second);
      }
    }
    Json row = {{"label", label}, {"pe", pe}};
    row.update(About(catalog::FindPe(pe)));
    row["fields"] = SharedFields(of_encoding, "pe.");
    row["parameters"] = parameters;  // ascending; several if the models differ in size
    rows.push_back(std::move(row));
  }
  return rows;
}

// The fields that keep a job from carrying this protocol's name.
Json Departures(const experiment::Job& job, std::string_view protocol) {
  const catalog::Values resolved = experiment::WithCoordinates(job);
  Json rows = Json::array();
  for (const catalog::Field& field : catalog::Fields()) {
    const auto value = job.values.find(field.name);
    if (!catalog::DecidesLabel(field, protocol) || value == job.values.end()) continue;
    if (!catalog::Applies(field, job.pe, job.task, resolved)) continue;
    const catalog::Value usual = catalog::DefaultOf(field, protocol, job.pe, job.task, resolved);
    if (usual == value->second) continue;
    rows.push_back({{"field", field.name},
                    {"value", catalog::ToText(value->second)},
                    {"protocol_value", catalog::ToText(usual)}});
  }
  return rows;
}

// The protocol with the fewest departures, and those departures.
std::pair<std::string, Json> Nearest(const experiment::Job& job) {
  std::pair<std::string, Json> nearest;
  for (const catalog::Entry& protocol : catalog::Protocols()) {
    Json departures = Departures(job, protocol.name);
    if (nearest.first.empty() || departures.size() < nearest.second.size()) {
      nearest = {std::string(protocol.name), std::move(departures)};
    }
  }
  return nearest;
}

Json Protocols(const std::vector<Configured>& cells) {
  std::vector<std::pair<Json, int>> kinds;  // number of groups of each kind
  for (const Configured& cell : cells) {
    const std::string& label = cell.cell->jobs.front().protocol();
    const catalog::Entry* entry = catalog::FindProtocol(label);
    Json kind = {{"name", label}, {"near", nullptr}, {"departures", Json::array()}};
    if (entry == nullptr && cell.job) {
      auto [near, departures] = Nearest(*cell.job);
      kind["near"] = near;
      kind["departures"] = std::move(departures);
      entry = catalog::FindProtocol(near);
    }
    kind.update(About(entry));
    const auto found = std::find_if(kinds.begin(), kinds.end(),
                                    [&](const auto& known) { return known.first == kind; });
    if (found == kinds.end()) {
      kinds.emplace_back(std::move(kind), 1);
    } else {
      ++found->second;
    }
  }
  Json rows = Json::array();
  for (auto& [kind, count] : kinds) {
    kind["cells"] = count;
    rows.push_back(std::move(kind));
  }
  return rows;
}

}  // namespace

Json SetUp(const ReportInput& input) {
  const results::FieldTable fields(input.jobs);
  const std::vector<Configured> cells = ConfiguredCells(input, fields);
  return {{"model", SharedFields(cells, "model.")},
          {"train", SharedFields(cells, "train.")},
          {"varies", Varying(cells)},
          {"tasks", Tasks(cells)},
          {"encodings", Encodings(input, cells)},
          {"protocols", Protocols(cells)}};
}

}  // namespace pelab::client::report
