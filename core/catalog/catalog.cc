#include "core/catalog/catalog.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>

#include "core/catalog/protocol_values.h"
#include "core/catalog/tables.h"

namespace pelab::catalog {
namespace {

template <typename Row>
const Row* Find(const std::vector<Row>& rows, std::string_view name) {
  const auto found =
      std::find_if(rows.begin(), rows.end(), [&](const Row& row) { return row.name == name; });
  return found == rows.end() ? nullptr : &*found;
}

constexpr std::string_view kTaskPrefix = "task.";

bool Matches(const DefaultRule& rule, std::string_view protocol, std::string_view pe,
             std::string_view task) {
  return (rule.protocol.empty() || rule.protocol == protocol) &&
         (rule.pe.empty() || rule.pe == pe) && (rule.task.empty() || rule.task == task);
}

bool InRange(const Field& field, double value) {
  return (field.min_exclusive ? value > field.min : value >= field.min) &&
         (field.max_exclusive ? value < field.max : value <= field.max);
}

bool IsChoice(const Field& field, std::string_view value) {
  return std::find(field.choices.begin(), field.choices.end(), value) != field.choices.end();
}

// Whether the members are in the order of the field's choices, each at most once. Every set then
// has one canonical form.
bool IsOrderedSubset(const Field& field, const std::vector<std::string>& values) {
  auto from = field.choices.begin();
  for (const std::string& value : values) {
    from = std::find(from, field.choices.end(), value);
    if (from == field.choices.end()) return false;
    ++from;
  }
  return true;
}

// Whether the members are ascending and distinct. Every set then has one canonical form.
bool IsOrderedSet(const Field& field, const std::vector<std::int64_t>& values) {
  const auto in_range = [&](std::int64_t value) {
    return InRange(field, static_cast<double>(value));
  };
  return std::all_of(values.begin(), values.end(), in_range) &&
         std::adjacent_find(values.begin(), values.end(), std::greater_equal<>()) == values.end();
}

bool IsAllowed(const Field& field, const Value& value) {
  switch (field.type) {
    case FieldType::kBool:
      return std::holds_alternative<bool>(value);
    case FieldType::kInt: {
      const auto* number = std::get_if<std::int64_t>(&value);
      return number != nullptr && InRange(field, static_cast<double>(*number));
    }
    case FieldType::kReal: {
      const auto* number = std::get_if<double>(&value);
      return number != nullptr && std::isfinite(*number) && InRange(field, *number);
    }
    case FieldType::kChoice: {
      const auto* choice = std::get_if<std::string>(&value);
      return choice != nullptr && IsChoice(field, *choice);
    }
    case FieldType::kChoiceSet: {
      const auto* set = std::get_if<std::vector<std::string>>(&value);
      return set != nullptr && IsOrderedSubset(field, *set);
    }
    case FieldType::kIntSet: {
      const auto* set = std::get_if<std::vector<std::int64_t>>(&value);
      return set != nullptr && IsOrderedSet(field, *set);
    }
    case FieldType::kText: {
      const auto* text = std::get_if<std::string>(&value);
      return text != nullptr && field.accepts(*text);
    }
  }
  return false;
}

}  // namespace

const std::vector<Field>& Fields() {
  static const std::vector<Field> fields = [] {
    std::vector<Field> all;
    for (auto* group :
         {TargetFields, ModelFields, TrainFields, PeFields, TaskFields, AnalysisFields}) {
      for (Field& field : group()) all.push_back(std::move(field));
    }
    return all;
  }();
  return fields;
}

const Entry* FindPe(std::string_view name) {
  return name == OwnPe().name ? &OwnPe() : Find(Pes(), name);
}
const Entry* FindTask(std::string_view name) {
  return name == OwnTask().name ? &OwnTask() : Find(Tasks(), name);
}
const Entry* FindProtocol(std::string_view name) { return Find(Protocols(), name); }
const Entry* FindAnalysis(std::string_view name) { return Find(Analyses(), name); }
bool IsAnalysisField(const Field& field) { return FindAnalysis(field.owner) != nullptr; }

const Field* FindField(std::string_view name, std::string_view owner) {
  for (const Field& field : Fields()) {
    if (field.name == name && (field.owner.empty() || field.owner == owner)) return &field;
  }
  return nullptr;
}

bool IsOf(const Field& field, std::string_view pe, std::string_view task) {
  if (field.of_generated && task == OwnTask().name) return false;
  if (field.owner.empty()) return true;
  return field.owner == (field.name.substr(0, kTaskPrefix.size()) == kTaskPrefix ? task : pe);
}

bool Applies(const Field& field, std::string_view pe, std::string_view task,
             const Values& resolved) {
  if (!IsOf(field, pe, task)) return false;
  if (!field.applies_when) return true;
  const auto decider = resolved.find(field.applies_when->field);
  if (decider == resolved.end()) return field.applies_when->unless;
  const auto* choice = std::get_if<std::string>(&decider->second);
  return (choice != nullptr && field.applies_when->Names(*choice)) != field.applies_when->unless;
}

Value DefaultOf(const Field& field, std::string_view protocol, std::string_view pe,
                std::string_view task, const Values& resolved) {
  if (field.derived_default != nullptr) return field.derived_default(resolved);
  const auto rule = std::find_if(
      field.defaults.begin(), field.defaults.end(),
      [&](const DefaultRule& candidate) { return Matches(candidate, protocol, pe, task); });
  return rule == field.defaults.end() ? field.defaults.back().value : rule->value;
}

std::string CheckValue(const Field& field, const Value& value) {
  return IsAllowed(field, value) ? std::string() : Allowed(field);
}

std::string ProtocolLabel(std::string_view pe, std::string_view task, const Values& resolved) {
  for (const Entry& protocol : Protocols()) {
    const bool all = std::all_of(Fields().begin(), Fields().end(), [&](const Field& field) {
      if (!DecidesLabel(field, protocol.name)) return true;
      const auto value = resolved.find(field.name);
      return value == resolved.end() || !Applies(field, pe, task, resolved) ||
             value->second == DefaultOf(field, protocol.name, pe, task, resolved);
    });
    if (all) return std::string(protocol.name);
  }
  return "custom";
}

}  // namespace pelab::catalog
