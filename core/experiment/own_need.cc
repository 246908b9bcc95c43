#include "core/experiment/own_need.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <utility>

#include "core/base/json_text.h"
#include "core/experiment/declaration_json.h"

namespace pelab::experiment {
namespace {

using catalog::Field;
using catalog::FieldType;
using catalog::Value;
using Json = nlohmann::json;

// Whether a declaration may say what it needs of the field.
bool CanBeNeeded(const Field& field) {
  return field.name.rfind("model.", 0) == 0 || field.name.rfind("task.", 0) == 0 ||
         field.name.rfind("train.", 0) == 0;
}

// The catalog's rows of this name. They have the same type; tasks differ in ranges and choices.
std::vector<const Field*> NeedableRows(const std::string& name) {
  std::vector<const Field*> rows;
  std::vector<std::string_view> known;
  for (const Field& field : catalog::Fields()) {
    if (!CanBeNeeded(field)) continue;
    known.push_back(field.name);
    if (field.name == name) rows.push_back(&field);
  }
  if (!rows.empty()) return rows;
  const std::string near(catalog::DidYouMean(name, known));
  Fail("the declaration's needs name " + Quoted(name) + "; " +
       (near.empty() ? "" : "did you mean " + near + "? ") +
       "allowed: a field of the model, the task or the training, such as model.heads");
}

std::optional<Value> NeededValue(FieldType type, const Json& json) {
  if (type == FieldType::kBool && json.is_boolean()) return Value(json.get<bool>());
  if (type == FieldType::kReal && json.is_number()) return Value(json.get<double>());
  if (type == FieldType::kInt) {
    const auto number = IntegerOf<std::int64_t>(json);
    return number ? std::optional<Value>(*number) : std::nullopt;
  }
  const bool is_text = type == FieldType::kChoice || type == FieldType::kText;
  return is_text && json.is_string() ? std::optional<Value>(json.get<std::string>()) : std::nullopt;
}

std::string JsonShown(const Json& json) {
  if (json.is_string()) return Quoted(json.get_ref<const std::string&>());
  if (json.is_structured()) return json.is_array() ? "a list" : "an object";
  return json.dump();
}

// The value, if one of the rows allows it.
Value AllowedValue(const std::vector<const Field*>& rows, const Json& json) {
  const std::optional<Value> value = NeededValue(rows.front()->type, json);
  for (const Field* row : rows) {
    if (value && catalog::CheckValue(*row, *value).empty()) return *value;
  }
  const bool is_choice = rows.front()->type == FieldType::kChoice && json.is_string();
  const std::string near(
      is_choice ? catalog::DidYouMean(json.get<std::string>(), rows.front()->choices) : "");
  Fail("the declaration's needs: " + std::string(rows.front()->name) + " is " + JsonShown(json) +
       "; allowed: " + catalog::Allowed(*rows.front()) +
       (near.empty() ? "" : "; did you mean " + near + "?"));
}

void ReadAllowed(const std::vector<const Field*>& rows, const Json& json, OwnNeed* need) {
  const std::string where = "the declaration's needs: " + need->field;
  if (json.empty() || json.size() > kMaxNeededValues) {
    Fail(where + " has " + std::to_string(json.size()) + " values; allowed: 1 to " +
         std::to_string(kMaxNeededValues));
  }
  std::set<Value> known;
  for (const Json& one : json) {
    need->allowed.push_back(AllowedValue(rows, one));
    if (!known.insert(need->allowed.back()).second) {
      Fail(where + " names " + JsonShown(one) + " twice");
    }
  }
}

void ReadRange(const std::vector<const Field*>& rows, const Json& json, OwnNeed* need) {
  const std::string where = "the declaration's needs: " + need->field;
  const Field& field = *rows.front();
  if (field.type != FieldType::kInt && field.type != FieldType::kReal) {
    Fail(where + " must be a list of values, not a range; allowed: " + catalog::Allowed(field));
  }
  OnlyMembers(json, where, {"min", "max"});
  need->min = NumberMember(json, where, "min");
  need->max = NumberMember(json, where, "max");
  const bool whole = std::trunc(need->min) == need->min && std::trunc(need->max) == need->max;
  if (field.type == FieldType::kInt && !whole) Fail(where + ": min and max must be integers");
  const auto overlaps = [&](const Field* row) {
    return need->min <= row->max && need->max >= row->min;
  };
  if (need->min > need->max || std::none_of(rows.begin(), rows.end(), overlaps)) {
    Fail(where + " must be " + need->InWords() +
         ", which leaves no value; allowed: " + catalog::Allowed(field));
  }
}

OwnNeed ReadNeed(const std::string& name, const Json& json) {
  const std::vector<const Field*> rows = NeedableRows(name);
  const FieldType type = rows.front()->type;
  if (type == FieldType::kChoiceSet || type == FieldType::kIntSet) {
    Fail("the declaration's needs name " + name +
         ", which has a list as its value; allowed: "
         "fields of one value");
  }
  OwnNeed need;
  need.field = name;
  if (json.is_array()) {
    ReadAllowed(rows, json, &need);
  } else if (json.is_object()) {
    ReadRange(rows, json, &need);
  } else {
    Fail("the declaration's needs: " + name + " is " + JsonShown(json) +
         R"(; allowed: a list of values, or {"min": NUMBER, "max": NUMBER})");
  }
  return need;
}

}  // namespace

bool OwnNeed::Allows(const Value& value) const {
  if (!allowed.empty()) return std::find(allowed.begin(), allowed.end(), value) != allowed.end();
  const auto* whole = std::get_if<std::int64_t>(&value);
  const auto* real = std::get_if<double>(&value);
  if (whole == nullptr && real == nullptr) return false;
  const double number = whole == nullptr ? *real : static_cast<double>(*whole);
  return number >= min && number <= max;
}

std::string OwnNeed::ToText() const {
  if (allowed.empty()) return catalog::NumberToText(min) + " to " + catalog::NumberToText(max);
  std::string text;
  for (std::size_t i = 0; i < allowed.size(); ++i) {
    if (i > 0) text += i + 1 == allowed.size() ? " or " : ", ";
    text += catalog::ToText(allowed[i]);
  }
  return text;
}

std::string OwnNeed::InWords() const { return (allowed.empty() ? "from " : "") + ToText(); }

std::vector<const OwnNeed*> UnmetNeeds(const std::vector<OwnNeed>& needs,
                                       const catalog::Values& job) {
  std::vector<const OwnNeed*> unmet;
  for (const OwnNeed& need : needs) {
    const auto found = job.find(need.field);
    if (found != job.end() && !need.Allows(found->second)) unmet.push_back(&need);
  }
  return unmet;
}

std::vector<OwnNeed> NeedsMember(const Json& json) {
  std::vector<OwnNeed> needs;
  const auto found = json.find("needs");
  if (found == json.end()) return needs;
  if (!found->is_object()) {
    Fail(
        "the declaration's needs must be an object of fields, such as "
        R"({"model.mask": ["causal"]})");
  }
  if (found->size() > kMaxOwnNeeds) {
    Fail("the declaration's needs name " + std::to_string(found->size()) + " fields; at most " +
         std::to_string(kMaxOwnNeeds) + " are allowed");
  }
  for (const auto& [name, need] : found->items()) needs.push_back(ReadNeed(name, need));
  return needs;
}

nlohmann::ordered_json NeedsJson(const std::vector<OwnNeed>& needs) {
  nlohmann::ordered_json json = nlohmann::ordered_json::object();
  for (const OwnNeed& need : needs) {
    if (need.allowed.empty()) {
      json[need.field] = {{"min", need.min}, {"max", need.max}};
      continue;
    }
    nlohmann::ordered_json& values = json[need.field] = nlohmann::ordered_json::array();
    for (const Value& one : need.allowed) {
      std::visit([&](const auto& value) { values.push_back(value); }, one);
    }
  }
  return json;
}

}  // namespace pelab::experiment
