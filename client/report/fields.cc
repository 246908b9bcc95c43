#include "client/report/fields.h"

#include <algorithm>
#include <cstddef>
#include <string_view>
#include <utility>

#include "client/render/json.h"
#include "core/catalog/catalog.h"
#include "core/views/text.h"

namespace pelab::client {
namespace {

using render::Json;
using Rows = std::vector<const Fields*>;

constexpr char kCustom[] = "custom";  // catalog::ProtocolLabel where no named set fits

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

Fields FieldsOfJob(const v1::JobRow& row) {
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

// A job's part seed is taken to follow the job's own where its value is its own seed and no
// replicate with another seed has that value.
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

// Names of fields (beside `ignored`) that do not have one value over all of `rows`.
std::set<std::string> Differing(const Rows& rows, const std::set<std::string>& ignored) {
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

// How a job of a custom protocol departs from the one of a named protocol that is next to it.
std::set<std::string> Departures(const Fields* custom, const Rows& named,
                                 const std::set<std::string>& ignored) {
  std::set<std::string> fewest;
  bool first = true;
  for (const Fields* base : named) {
    std::set<std::string> differing = Differing({base, custom}, ignored);
    if (first || differing.size() < fewest.size()) fewest = std::move(differing);
    first = false;
  }
  return fewest;
}

std::set<std::string> TellingFields(const Rows& rows, const std::set<std::string>& ignored) {
  std::set<std::string> differing = Differing(rows, ignored);
  if (differing.count("protocol") == 0) return differing;
  std::map<std::string, Rows> by_protocol;
  for (const Fields* row : rows) by_protocol[ValueOf(*row, "protocol")].push_back(row);
  std::set<std::string> telling = {"protocol"};
  Rows named;  // one of each
  for (const auto& [protocol, members] : by_protocol) {
    if (protocol == kCustom) continue;
    telling.merge(Differing(members, ignored));
    named.push_back(members.front());
  }
  for (const Fields* custom : by_protocol[kCustom]) {
    telling.merge(Departures(custom, named, ignored));
  }
  return telling;
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

}  // namespace

std::vector<Fields> StoredFieldsOf(const std::vector<v1::JobRow>& jobs) {
  std::vector<Fields> all;
  all.reserve(jobs.size());
  for (const v1::JobRow& job : jobs) all.push_back(FieldsOfJob(job));
  return all;
}

std::vector<Fields> FieldsOf(const std::vector<v1::JobRow>& jobs) {
  std::vector<Fields> all = StoredFieldsOf(jobs);
  MarkFollowedSeeds(all);
  return all;
}

std::string ValueOf(const Fields& fields, const std::string& name) {
  const auto found = fields.find(name == "pe_label" ? "pe" : name);
  return found == fields.end() ? "-" : found->second;
}

std::string IdentityOf(Fields fields) {
  for (const char* name : {"seed", "device", "protocol", "pe_label"}) fields.erase(name);
  std::string identity;
  for (const auto& [name, value] : fields) identity += Concat(name, "=", value, "\n");
  return identity;
}

std::vector<std::string> TellingColumns(const std::vector<Fields>& all) {
  static const auto& not_columns = *new std::set<std::string>{
      "seed", "device", "pe", "pe_label", "task", "pe.name", "task.name"};
  std::map<std::pair<std::string, std::string>, Rows> by_name;
  for (const Fields& fields : all)
    by_name[{ValueOf(fields, "pe"), ValueOf(fields, "task")}].push_back(&fields);
  std::set<std::string> extra;
  for (const auto& [name, rows] : by_name) extra.merge(TellingFields(rows, not_columns));
  std::vector<std::string> columns = {"pe", "task"};
  if (extra.erase("protocol") > 0) columns.emplace_back("protocol");
  columns.insert(columns.end(), extra.begin(), extra.end());
  return columns;
}

std::set<std::string> MixedFields(const Rows& rows) {
  return TellingFields(rows, {"seed", "device", "pe.name", "task.name"});
}

absl::Status CheckFieldNames(const std::vector<std::string>& names, const std::string& flag) {
  for (const std::string& name : names) {
    if (IsKnownField(name)) continue;
    std::vector<std::string_view> known(ColumnFields().begin(), ColumnFields().end());
    for (const catalog::Field& field : catalog::Fields()) known.push_back(field.name);
    const std::string_view near = catalog::DidYouMean(name, known);
    return absl::InvalidArgumentError(Concat(flag, ": unknown field \"", name, "\"",
                                             near.empty() ? "" : "; did you mean ", near,
                                             "; known: ", Join(ColumnFields(), ", "),
                                             " and the fields that `pelab catalog field` lists"));
  }
  return absl::OkStatus();
}

}  // namespace pelab::client
