#include "core/results/fields.h"

#include <algorithm>
#include <string_view>
#include <tuple>

#include "core/base/json_text.h"
#include "core/base/strings.h"
#include "core/catalog/catalog.h"
#include "core/experiment/configuration.h"
#include "core/render/json.h"

namespace pelab::results {
namespace {

using render::Json;
using FieldRows = std::vector<const Fields*>;

constexpr char kCustom[] = "custom";  // catalog::ProtocolLabel if no named protocol fits

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

// The fields of a configuration. A seed that has the value of the job's own seed reads kSeedMark.
Fields FieldsOfTemplate(const std::string& spec_template) {
  std::string json;
  for (const char c : spec_template) {
    if (c == experiment::kSeedMark) {
      json += R"("\u001f")";
    } else {
      json += c;
    }
  }
  Fields fields;
  const Json spec = ParseJson<Json>(json);
  if (!spec.is_object()) return fields;
  Flatten(spec, "", fields);
  // A field at its legacy value is not stored.
  for (const catalog::Field& field : catalog::Fields()) {
    if (field.legacy && field.owner.empty()) {
      fields.emplace(field.name, catalog::ToText(*field.legacy));
    }
  }
  return fields;
}

bool IsMark(const std::string& value) {
  return value.size() == 1 && value[0] == experiment::kSeedMark;
}
bool IsPartSeed(const std::string& name) { return name.ends_with("_seed"); }

// The names of fields, except `ignored`, that have more than one value in `rows`.
std::set<std::string> Differing(const FieldRows& rows, const std::set<std::string>& ignored) {
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

// The fields in which a job of a custom protocol departs from the nearest job of a named protocol.
std::set<std::string> Departures(const Fields* custom, const FieldRows& named,
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

std::set<std::string> TellingFields(const FieldRows& rows, const std::set<std::string>& ignored) {
  std::set<std::string> differing = Differing(rows, ignored);
  if (differing.count("protocol") == 0) return differing;
  std::map<std::string, FieldRows> by_protocol;
  for (const Fields* row : rows) by_protocol[ValueOf(*row, "protocol")].push_back(row);
  std::set<std::string> telling = {"protocol"};
  FieldRows named;  // one of each protocol
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

FieldTable::FieldTable(const JobList& jobs) : rows_(jobs.rows()) {
  using Key = std::tuple<std::int64_t, std::string_view, std::string_view, std::string_view>;
  std::map<Key, const Kind*> known;
  kind_.reserve(rows_.size());
  for (const v1::JobRow& row : rows_) {
    const Key key(row.configuration_id(), row.pe_label(), row.task(), row.protocol());
    const auto [found, is_new] = known.emplace(key, nullptr);
    if (is_new) found->second = &kinds_.emplace_back(MakeKind(jobs, row));
    kind_.push_back(found->second);
  }
  FindFixedSeeds();
  std::map<std::pair<const Kind*, std::string>, const Fields*> made;
  fields_.reserve(rows_.size());
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    const std::string seed = kind_[i]->some_fixed ? Concat(rows_[i].seed()) : "";
    const auto [found, is_new] = made.emplace(std::pair(kind_[i], seed), nullptr);
    if (is_new) {
      found->second = &all_.emplace_back(FieldsOf(*kind_[i], seed));
      distinct_.push_back(found->second);
    }
    fields_.push_back(found->second);
  }
}

FieldTable::Kind FieldTable::MakeKind(const JobList& jobs, const v1::JobRow& row) const {
  Kind kind;
  const auto found = jobs.templates().find(row.configuration_id());
  if (found != jobs.templates().end()) kind.stored = FieldsOfTemplate(found->second);
  kind.stored["pe"] = row.pe_label();
  kind.stored["task"] = row.task();
  kind.stored["protocol"] = row.protocol();
  kind.stored.erase("seed");
  Fields rest = kind.stored;
  std::erase_if(rest, [](const auto& field) { return IsPartSeed(field.first); });
  kind.rest = IdentityOf(std::move(rest));
  return kind;
}

// The seed of a job's part counts as following the job's own seed if the two are equal and no
// replicate with another seed has that value.
void FieldTable::FindFixedSeeds() {
  for (const Kind& kind : kinds_) {
    for (const auto& [name, value] : kind.stored) {
      if (IsPartSeed(name) && !IsMark(value)) fixed_[{kind.rest, name}].insert(value);
    }
  }
  for (Kind& kind : kinds_) {
    kind.some_fixed = std::any_of(kind.stored.begin(), kind.stored.end(), [&](const auto& field) {
      return IsMark(field.second) &&
             (!IsPartSeed(field.first) || fixed_.count({kind.rest, field.first}) > 0);
    });
  }
}

bool FieldTable::IsFixed(const Kind& kind, const std::string& name, const std::string& seed) const {
  if (!IsPartSeed(name)) return true;
  const auto found = fixed_.find({kind.rest, name});
  return found != fixed_.end() && found->second.count(seed) > 0;
}

Fields FieldTable::FieldsOf(const Kind& kind, const std::string& seed) const {
  Fields fields = kind.stored;
  for (auto& [name, value] : fields) {
    if (IsMark(value)) value = kind.some_fixed && IsFixed(kind, name, seed) ? seed : "seed";
  }
  return fields;
}

std::string FieldTable::StoredValue(std::size_t job, const std::string& name) const {
  const v1::JobRow& row = rows_[job];
  if (name == "seed") return Concat(row.seed());
  if (name == "device") return row.device();
  std::string value = ValueOf(kind_[job]->stored, name);
  return IsMark(value) ? Concat(row.seed()) : value;
}

std::string ValueOf(const Fields& fields, const std::string& name) {
  const auto found = fields.find(name == "pe_label" ? "pe" : name);
  return found == fields.end() ? "-" : found->second;
}

std::string IdentityOf(Fields fields) {
  fields.erase("protocol");
  std::string identity;
  for (const auto& [name, value] : fields) identity += Concat(name, "=", value, "\n");
  return identity;
}

std::vector<std::string> TellingColumns(const FieldRows& all) {
  static const auto& not_columns =
      *new std::set<std::string>{"pe", "pe_label", "task", "pe.name", "task.name"};
  std::map<std::pair<std::string, std::string>, FieldRows> by_name;
  for (const Fields* fields : all)
    by_name[{ValueOf(*fields, "pe"), ValueOf(*fields, "task")}].push_back(fields);
  std::set<std::string> extra;
  for (const auto& [name, rows] : by_name) {
    std::set<std::string> telling = TellingFields(rows, not_columns);
    // The chance of own data follows from these, so it need not be told beside them.
    const bool follows = telling.contains("task.file") || telling.contains("task.scored_classes");
    if (follows) telling.erase("task.chance");
    extra.merge(telling);
  }
  std::vector<std::string> columns = {"pe", "task"};
  if (extra.erase("protocol") > 0) columns.emplace_back("protocol");
  columns.insert(columns.end(), extra.begin(), extra.end());
  return columns;
}

std::set<std::string> MixedFields(const FieldRows& rows) {
  return TellingFields(rows, {"pe.name", "task.name"});
}

absl::Status CheckFieldNames(const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    if (IsKnownField(name)) continue;
    std::vector<std::string_view> known(ColumnFields().begin(), ColumnFields().end());
    for (const catalog::Field& field : catalog::Fields()) known.push_back(field.name);
    const std::string_view near = catalog::DidYouMean(name, known);
    return absl::InvalidArgumentError(Concat("unknown field \"", name, "\"",
                                             near.empty() ? "" : "; did you mean ", near,
                                             "; known: ", Join(ColumnFields(), ", "),
                                             " and the fields that `pelab catalog field` lists"));
  }
  return absl::OkStatus();
}

}  // namespace pelab::results
