#include "core/experiment/yaml_value.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"

namespace pelab::experiment {
namespace {

using catalog::Field;
using catalog::FieldType;
using catalog::Value;
using Kind = YamlNode::Kind;

template <typename Number>
std::optional<Number> ReadNumber(std::string_view text) {
  if (text.size() > 1 && text[0] == '+' && text[1] != '-') text.remove_prefix(1);
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

std::optional<Value> ReadScalar(FieldType type, const YamlNode& node) {
  if (type == FieldType::kChoice || type == FieldType::kText) return Value(node.text);
  if (node.quoted) return std::nullopt;
  if (type == FieldType::kBool) {
    if (node.text == "true" || node.text == "True" || node.text == "TRUE") return Value(true);
    if (node.text == "false" || node.text == "False" || node.text == "FALSE") return Value(false);
    return std::nullopt;
  }
  if (type == FieldType::kInt) {
    const auto number = ReadInteger(node);
    return number ? std::optional<Value>(*number) : std::nullopt;
  }
  const auto number = ReadReal(node);
  return number ? std::optional<Value>(*number) : std::nullopt;
}

std::optional<Value> ReadSet(const Field& field, const YamlNode& node) {
  std::vector<std::string> ordered;
  for (const std::string_view choice : field.choices) {
    const auto is_choice = [&](const YamlPointer& item) {
      return item->kind == Kind::kScalar && item->text == choice;
    };
    if (std::any_of(node.items.begin(), node.items.end(), is_choice)) ordered.emplace_back(choice);
  }
  // An unknown choice, or one that occurs twice.
  if (ordered.size() != node.items.size()) return std::nullopt;
  return Value(std::move(ordered));
}

std::optional<Value> ReadIntSet(const YamlNode& node) {
  std::set<std::int64_t> members;
  for (const YamlPointer& item : node.items) {
    const auto number = ReadInteger(*item);
    if (!number || !members.insert(*number).second) return std::nullopt;
  }
  return Value(std::vector<std::int64_t>(members.begin(), members.end()));
}

bool IsSet(const Field& field) {
  return field.type == FieldType::kChoiceSet || field.type == FieldType::kIntSet;
}

}  // namespace

std::optional<std::int64_t> ReadInteger(const YamlNode& node) {
  if (node.kind != Kind::kScalar || node.quoted) return std::nullopt;
  return ReadNumber<std::int64_t>(node.text);
}

std::optional<double> ReadReal(const YamlNode& node) {
  if (node.kind != Kind::kScalar || node.quoted) return std::nullopt;
  const auto number = ReadNumber<double>(node.text);
  if (!number || !std::isfinite(*number)) return std::nullopt;
  return *number == 0 ? 0.0 : *number;  // turns -0 into 0
}

void Violations::Add(const Place& place, std::string value, std::string allowed,
                     std::string message) {
  Violation violation;
  violation.line = place.line;
  violation.column = place.column;
  violation.path = place.path;
  violation.value = std::move(value);
  violation.allowed = std::move(allowed);
  violation.message = std::move(message);
  Add(std::move(violation));
}

void Violations::Add(Violation violation) {
  if (full()) return;
  if (!seen_.emplace(violation.line, violation.column, violation.path, violation.message).second)
    return;
  violations_.push_back(std::move(violation));
}

std::vector<Violation> Violations::TakeSorted() {
  std::stable_sort(violations_.begin(), violations_.end(),
                   [](const Violation& a, const Violation& b) {
                     const auto rank = [](const Violation& v) {
                       return std::make_tuple(v.line == 0, v.line, v.column);
                     };
                     return rank(a) < rank(b);
                   });
  return std::move(violations_);
}

std::optional<Value> ReadYamlValue(const Field& field, const YamlNode& node) {
  std::optional<Value> value;
  if (IsSet(field)) {
    if (node.kind != Kind::kList) return std::nullopt;
    value = field.type == FieldType::kIntSet ? ReadIntSet(node) : ReadSet(field, node);
  } else if (node.kind == Kind::kScalar) {
    value = ReadScalar(field.type, node);
  }
  return value && catalog::CheckValue(field, *value).empty() ? value : std::nullopt;
}

bool IsOneValue(const Field& field, const YamlNode& node) {
  if (node.kind != Kind::kList) return true;
  return IsSet(field) && (node.items.empty() || node.items[0]->kind != Kind::kList);
}

std::string OncePerValue(const Field& field, const YamlNode& node) {
  constexpr std::size_t kMostShown = 8;
  const std::string owner(field.owner);
  const std::string parameter(field.name.substr(owner.size() + 1));
  std::string list;
  std::size_t shown = 0;
  for (const YamlPointer& item : node.items) {
    const std::optional<Value> value = ReadYamlValue(field, *item);
    if (!value || shown == kMostShown) continue;
    absl::StrAppend(&list, list.empty() ? "" : ", ", "{name: ", owner, ", ", parameter, ": ",
                    catalog::ToText(*value), "}");
    ++shown;
  }
  return "list " + owner + " once for each value" +
         (list.empty() ? " under analyses" : ": analyses: [" + list + "]");
}

std::string MustBe(const Field& field, const YamlNode& node) {
  std::string message =
      std::string(field.name) + " must be " + catalog::Allowed(field) + ", not " + InWords(node);
  if (node.kind == Kind::kList && !IsSet(field)) {
    const bool of_analysis = catalog::IsAnalysisField(field);
    message += of_analysis
                   ? "; for several values, " + OncePerValue(field, node)
                   : "; to sweep over values, put " + std::string(field.name) + " under axes";
  }
  if (node.kind == Kind::kScalar && field.type == FieldType::kChoice) {
    const std::string near(catalog::DidYouMean(node.text, field.choices));
    if (!near.empty()) message += "; did you mean " + near + "?";
  }
  return message;
}

std::string SortedList(std::vector<std::string_view> names) {
  std::sort(names.begin(), names.end());
  std::string list;
  for (const std::string_view name : names) {
    list += (list.empty() ? "" : ", ") + std::string(name);
  }
  return list;
}

std::string UnknownName(std::string_view kind, std::string_view shown, std::string_view word,
                        std::vector<std::string_view> known) {
  const std::string near(catalog::DidYouMean(word, known));
  return "unknown " + std::string(kind) + " " + std::string(shown) + "; " +
         (near.empty() ? "" : "did you mean " + near + "? ") +
         "known: " + SortedList(std::move(known));
}

}  // namespace pelab::experiment
