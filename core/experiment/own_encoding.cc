#include "core/experiment/own_encoding.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "core/base/json_text.h"
#include "core/catalog/own.h"
#include "core/experiment/declaration_json.h"

namespace pelab::experiment {
namespace {

using catalog::FieldType;
using catalog::Value;
using Json = nlohmann::json;

std::string_view TypeName(FieldType type) {
  if (type == FieldType::kBool) return "bool";
  if (type == FieldType::kChoice) return "choice";
  return type == FieldType::kInt ? "int" : "real";
}

// Reads one declaration. The first problem ends it.
class DeclarationReader {
 public:
  static OwnEncoding Read(std::string_view text) {
    DeclaredFile file;
    const Json json = ParseDeclared(text, "encoding",
                                    {"methods", "causal_only", "options", "needs", "extrapolates"},
                                    kMaxEncodingBytes, &file);
    OwnEncoding encoding;
    encoding.name = file.name;
    encoding.sha256 = file.sha256;
    encoding.bytes = file.bytes;
    encoding.help = file.help;
    encoding.causal_only = FlagMember(json, kTheDeclaration, "causal_only");
    encoding.methods = ReadMethods(json);
    encoding.options = ReadOptions(json);
    encoding.needs = NeedsMember(json);
    if (json.contains("extrapolates")) {
      encoding.extrapolates = FlagMember(json, kTheDeclaration, "extrapolates");
    }
    return encoding;
  }

 private:
  static std::vector<std::string> ReadMethods(const Json& json) {
    const std::vector<std::string_view> known(catalog::kOwnMethods.begin(),
                                              catalog::kOwnMethods.end());
    const auto found = json.find("methods");
    std::set<std::string> named;
    if (found != json.end() && found->is_array()) {
      for (const Json& one : *found) {
        const std::string name = one.is_string() ? one.get<std::string>() : "";
        if (std::find(known.begin(), known.end(), name) == known.end()) {
          const std::string near(catalog::DidYouMean(name, known));
          Fail("the declaration names a method " + Quoted(name) + "; " +
               (near.empty() ? "" : "did you mean " + near + "? ") + "known: " + Listed(known));
        }
        named.insert(name);
      }
    }
    if (named.empty()) Fail("the declaration names no methods; known: " + Listed(known));
    std::vector<std::string> methods;
    for (const std::string_view name : known) {
      if (named.count(std::string(name)) > 0) methods.emplace_back(name);
    }
    return methods;
  }

  static std::vector<OwnOption> ReadOptions(const Json& json) {
    std::vector<OwnOption> options;
    const auto found = json.find("options");
    if (found == json.end()) return options;
    if (!found->is_array()) Fail("the declaration's options must be a list");
    if (found->size() > kMaxOwnOptions) {
      Fail("the declaration has " + std::to_string(found->size()) + " options; at most " +
           std::to_string(kMaxOwnOptions) + " are allowed");
    }
    for (const Json& one : *found) options.push_back(ReadOption(one));
    std::sort(options.begin(), options.end(),
              [](const OwnOption& a, const OwnOption& b) { return a.name < b.name; });
    for (std::size_t i = 1; i < options.size(); ++i) {
      if (options[i].name == options[i - 1].name) {
        Fail("option " + options[i].name + " is declared twice");
      }
    }
    return options;
  }

  static OwnOption ReadOption(const Json& json) {
    if (!json.is_object()) Fail("an option of the declaration is not an object");
    OwnOption option;
    option.name = TextMember(json, "an option", "name", 100);
    if (!catalog::IsOwnName(option.name)) {
      Fail("an option's name " + Quoted(option.name) + " must be " +
           std::string(catalog::kOwnNameRule));
    }
    if (option.name == "name" || option.name == "file") {
      Fail("an option must not be named " + option.name);
    }
    const std::string where = "option " + option.name;
    const std::string type = TextMember(json, where, "type", 20);
    if (type == "choice") {
      OnlyMembers(json, where, {"name", "type", "choices", "default", "help"});
    } else {
      OnlyMembers(json, where, {"name", "type", "min", "max", "default", "help"});
    }
    option.help = TextMember(json, where, "help", 300);
    if (type == "bool") {
      ReadFlag(json, where, &option);
    } else if (type == "choice") {
      ReadChoice(json, where, &option);
    } else if (type == "int" || type == "real") {
      ReadNumber(json, where, type, &option);
    } else {
      Fail(where + ": its type must be bool, int, real or choice, not " + Quoted(type));
    }
    return option;
  }

  static void ReadFlag(const Json& json, const std::string& where, OwnOption* option) {
    option->type = FieldType::kBool;
    option->default_value = FlagMember(json, where, "default");
    if (!json.contains("default")) Fail(where + " has no default");
  }

  static void ReadNumber(const Json& json, const std::string& where, const std::string& type,
                         OwnOption* option) {
    option->type = type == "int" ? FieldType::kInt : FieldType::kReal;
    option->min = NumberMember(json, where, "min");
    option->max = NumberMember(json, where, "max");
    if (option->type == FieldType::kInt) {
      const auto number =
          json.contains("default") ? IntegerOf<std::int64_t>(json["default"]) : std::nullopt;
      if (!number) Fail(where + ".default must be an integer");
      option->default_value = *number;
    } else {
      option->default_value = NumberMember(json, where, "default");
    }
    CheckDefault(where, *option);
  }

  static void ReadChoice(const Json& json, const std::string& where, OwnOption* option) {
    option->type = FieldType::kChoice;
    const auto found = json.find("choices");
    if (found == json.end() || !found->is_array() || found->size() < 2 ||
        found->size() > kMaxOwnChoices) {
      Fail(where + ".choices must be a list of 2 to " + std::to_string(kMaxOwnChoices) + " names");
    }
    for (const Json& one : *found) {
      const std::string name = one.is_string() ? one.get<std::string>() : "";
      if (!catalog::IsChoiceName(name)) {
        Fail(where + ": a choice " + Quoted(name) + " must be " +
             std::string(catalog::kChoiceNameRule));
      }
      const auto& known = option->choices;
      if (std::find(known.begin(), known.end(), name) != known.end()) {
        Fail(std::string(where).append(" has the choice ").append(name).append(" twice"));
      }
      option->choices.push_back(name);
    }
    option->default_value = TextMember(json, where, "default", 100);
    CheckDefault(where, *option);
  }

  static void CheckDefault(const std::string& where, const OwnOption& option) {
    const std::string name = "pe." + option.name;
    const std::string allowed = catalog::CheckValue(option.ToField(name), option.default_value);
    if (!allowed.empty()) Fail(where + ".default must be " + allowed);
  }
};

// The members of an option's declaration beside its name, its type and its help.
void AddValues(const OwnOption& option, nlohmann::ordered_json* json) {
  if (option.type == FieldType::kChoice) (*json)["choices"] = option.choices;
  if (option.type == FieldType::kInt || option.type == FieldType::kReal) {
    (*json)["min"] = option.min;
    (*json)["max"] = option.max;
  }
  std::visit([&](const auto& value) { (*json)["default"] = value; }, option.default_value);
}

// One name and its value in a text of pe.options.
struct OptionText {
  std::string_view name;
  std::string_view value;
};

std::vector<OptionText> SplitOptions(std::string_view text) {
  std::vector<OptionText> parts;
  for (std::size_t at = 0; !text.empty() && at <= text.size();) {
    const std::size_t comma = std::min(text.find(',', at), text.size());
    const std::string_view one = text.substr(at, comma - at);
    const std::size_t equals = std::min(one.find('='), one.size());
    parts.push_back({one.substr(0, equals), one.substr(std::min(equals + 1, one.size()))});
    at = comma + 1;
  }
  return parts;
}

template <typename Number>
std::optional<Number> NumberIn(std::string_view text) {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

// The value of a number that `configure` gets if the option allows it.
template <typename Number>
std::optional<double> NumberFor(const OwnOption& option, std::string_view text) {
  const auto number = NumberIn<Number>(text);
  const std::string name = "pe." + option.name;
  if (!number || !catalog::CheckValue(option.ToField(name), *number).empty()) return std::nullopt;
  return static_cast<double>(*number);
}

std::optional<double> ValueFor(const OwnOption& option, std::string_view text) {
  if (option.type == FieldType::kInt) return NumberFor<std::int64_t>(option, text);
  if (option.type == FieldType::kReal) return NumberFor<double>(option, text);
  if (option.type == FieldType::kBool) {
    if (text != "true" && text != "false") return std::nullopt;
    return text == "true" ? 1 : 0;
  }
  const auto found = std::find(option.choices.begin(), option.choices.end(), text);
  if (found == option.choices.end()) return std::nullopt;
  return static_cast<double>(found - option.choices.begin());
}

std::string ListOrNone(const std::vector<std::string_view>& names) {
  return names.empty() ? "none" : Listed(names);
}

}  // namespace

catalog::Field OwnOption::ToField(const std::string& full_name) const {
  catalog::Field field;
  field.name = full_name;
  field.owner = catalog::OwnPe().name;
  field.type = type;
  field.min = min;
  field.max = max;
  field.choices = {choices.begin(), choices.end()};
  return field;
}

OwnEncodingResult ParseOwnEncoding(std::string_view json) {
  OwnEncodingResult result;
  try {
    result.encoding = DeclarationReader::Read(json);
  } catch (const DeclarationProblem& problem) {
    result.problem = problem.text;
  }
  return result;
}

std::string ToJson(const OwnEncoding& encoding) {
  nlohmann::ordered_json json = {{"format", 1}, {"kind", "encoding"}, {"name", encoding.name}};
  if (!encoding.sha256.empty()) json["sha256"] = encoding.sha256;
  if (encoding.bytes > 0) json["bytes"] = encoding.bytes;
  json["methods"] = encoding.methods;
  json["causal_only"] = encoding.causal_only;
  nlohmann::ordered_json options = nlohmann::ordered_json::array();
  for (const OwnOption& option : encoding.options) {
    nlohmann::ordered_json one = {{"name", option.name}, {"type", TypeName(option.type)}};
    AddValues(option, &one);
    if (!option.help.empty()) one["help"] = option.help;
    options.push_back(std::move(one));
  }
  json["options"] = std::move(options);
  if (!encoding.needs.empty()) json["needs"] = NeedsJson(encoding.needs);
  if (encoding.extrapolates) json["extrapolates"] = *encoding.extrapolates;
  if (!encoding.help.empty()) json["help"] = encoding.help;
  return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

std::string OptionsText(const OwnEncoding& encoding, const catalog::Values& given) {
  std::string text;
  for (const OwnOption& option : encoding.options) {
    const auto found = given.find(option.name);
    const Value& value = found == given.end() ? option.default_value : found->second;
    text += (text.empty() ? "" : ",") + option.name + "=" + catalog::ToText(value);
  }
  return text;
}

OptionValuesResult OptionValues(const OwnEncoding& encoding, std::string_view text) {
  const std::vector<OptionText> given = SplitOptions(text);
  std::vector<std::string_view> declared, named;
  for (const OwnOption& option : encoding.options) declared.push_back(option.name);
  for (const OptionText& one : given) named.push_back(one.name);
  OptionValuesResult result;
  if (declared != named) {
    result.problem = "its file declares the options " + ListOrNone(declared) +
                     "; allowed: that of the job, " + ListOrNone(named);
    return result;
  }
  for (std::size_t i = 0; i < given.size(); ++i) {
    const OwnOption& option = encoding.options[i];
    const std::optional<double> value = ValueFor(option, given[i].value);
    if (!value) {
      const std::string name = "pe." + option.name;
      result.problem = "the option " + option.name + " is " + std::string(given[i].value) +
                       "; allowed: " + catalog::Allowed(option.ToField(name));
      return result;
    }
    result.values.emplace_back(option.name, *value);
  }
  return result;
}

}  // namespace pelab::experiment
