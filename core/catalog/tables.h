// The catalog's tables: one function per group of fields, and short constructors for their rows.
// Private to core/catalog; all other code includes catalog.h.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/catalog/catalog.h"

namespace pelab::catalog {

// Rows in the order of resolution: a condition or a derived default may only refer to earlier rows.
std::vector<Field> TargetFields();    // task.targets, which decides whether a model.* exists
std::vector<Field> ModelFields();     // model.*
std::vector<Field> TrainFields();     // train.*
std::vector<Field> PeFields();        // pe.*, each owned by one PE
std::vector<Field> TaskFields();      // task.*
std::vector<Field> AnalysisFields();  // owned by one analysis

std::vector<Constraint> ModelConstraints();
std::vector<Constraint> TaskConstraints();
std::vector<Constraint> SizeConstraints();

using Rules = std::vector<DefaultRule>;

inline Value Whole(std::int64_t value) { return Value(value); }
inline Value Text(std::string_view value) { return Value(std::string(value)); }
inline Rules Always(Value value) { return {{"", "", "", std::move(value)}}; }
// The authors' MLA script differs from their other scripts in many switches.
inline Rules PublishedOr(Value mla, Value published, Value otherwise) {
  return {{"published", "mla", "", std::move(mla)},
          {"published", "", "", std::move(published)},
          {"", "", "", std::move(otherwise)}};
}
inline Rules PublishedOr(Value published, Value otherwise) {
  return {{"published", "", "", std::move(published)}, {"", "", "", std::move(otherwise)}};
}
inline Rules MatchedOr(Value matched, Value otherwise) {
  return {{"matched", "", "", std::move(matched)}, {"", "", "", std::move(otherwise)}};
}

struct Range {
  double min;
  double max;
  bool min_exclusive = false;
  bool max_exclusive = false;
};

inline Field MakeField(std::string_view name, std::string_view owner, FieldType type,
                       Rules defaults, std::string_view help) {
  Field field;
  field.name = name;
  field.owner = owner;
  field.type = type;
  field.defaults = std::move(defaults);
  field.help = help;
  return field;
}
inline Field BoolField(std::string_view name, std::string_view owner, Rules defaults,
                       std::string_view help) {
  return MakeField(name, owner, FieldType::kBool, std::move(defaults), help);
}
inline Field NumberField(std::string_view name, std::string_view owner, FieldType type, Range range,
                         Rules defaults, std::string_view unit, std::string_view help) {
  Field field = MakeField(name, owner, type, std::move(defaults), help);
  field.min = range.min;
  field.max = range.max;
  field.min_exclusive = range.min_exclusive;
  field.max_exclusive = range.max_exclusive;
  field.unit = unit;
  return field;
}
inline Field IntField(std::string_view name, std::string_view owner, double min, double max,
                      Rules defaults, std::string_view unit, std::string_view help) {
  return NumberField(name, owner, FieldType::kInt, {min, max}, std::move(defaults), unit, help);
}
// Distinct integers; empty by default.
inline Field IntSetField(std::string_view name, std::string_view owner, double min, double max,
                         std::string_view help) {
  return NumberField(name, owner, FieldType::kIntSet, {min, max},
                     Always(std::vector<std::int64_t>{}), "", help);
}
inline Field RealField(std::string_view name, std::string_view owner, Range range, Rules defaults,
                       std::string_view unit, std::string_view help) {
  return NumberField(name, owner, FieldType::kReal, range, std::move(defaults), unit, help);
}
inline Field ChoiceField(std::string_view name, std::string_view owner,
                         std::vector<std::string_view> choices, Rules defaults,
                         std::string_view help) {
  Field field = MakeField(name, owner, FieldType::kChoice, std::move(defaults), help);
  field.choices = std::move(choices);
  return field;
}

inline Field TextField(std::string_view name, std::string_view owner,
                       bool (*accepts)(std::string_view), std::string_view rule, Rules defaults,
                       std::string_view help) {
  Field field = MakeField(name, owner, FieldType::kText, std::move(defaults), help);
  field.accepts = accepts;
  field.rule = rule;
  return field;
}

inline Field Switch(Field field) {
  field.is_switch = true;
  return field;
}
// A field that was added after jobs had been stored. All of those jobs had the value `legacy`. They
// keep their keys, because the canonical form omits this value.
inline Field AddedLater(Value legacy, Field field) {
  field.legacy = std::move(legacy);
  return field;
}
inline Field Derived(Field field, Value (*from)(const Values&)) {
  field.derived_default = from;
  return field;
}
inline Field OfGenerated(Field field) {
  field.of_generated = true;
  return field;
}
inline Field When(Condition condition, Field field) {
  field.applies_when = condition;
  return field;
}

}  // namespace pelab::catalog
