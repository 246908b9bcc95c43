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
  return type == FieldType::kBool ? "bool" : type == FieldType::kInt ? "int" : "real";
}

// Reads one declaration. The first problem ends it.
class DeclarationReader {
 public:
  static OwnEncoding Read(std::string_view text) {
    DeclaredFile file;
    const Json json = ParseDeclared(text, "encoding", {"methods", "causal_only", "options"},
                                    kMaxEncodingBytes, &file);
    OwnEncoding encoding;
    encoding.name = file.name;
    encoding.sha256 = file.sha256;
    encoding.bytes = file.bytes;
    encoding.help = file.help;
    encoding.causal_only = FlagMember(json, kTheDeclaration, "causal_only");
    encoding.methods = ReadMethods(json);
    encoding.options = ReadOptions(json);
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
    OnlyMembers(json, where, {"name", "type", "min", "max", "default", "help"});
    option.help = TextMember(json, where, "help", 300);
    const std::string type = TextMember(json, where, "type", 20);
    if (type == "bool") {
      option.type = FieldType::kBool;
      option.default_value = FlagMember(json, where, "default");
      if (!json.contains("default")) Fail(where + " has no default");
      return option;
    }
    if (type != "int" && type != "real") {
      Fail(where + ": its type must be bool, int or real, not " + Quoted(type));
    }
    option.type = type == "int" ? FieldType::kInt : FieldType::kReal;
    option.min = NumberMember(json, where, "min");
    option.max = NumberMember(json, where, "max");
    if (option.type == FieldType::kInt) {
      const auto number =
          json.contains("default") ? IntegerOf<std::int64_t>(json["default"]) : std::nullopt;
      if (!number) Fail(where + ".default must be an integer");
      option.default_value = *number;
    } else {
      option.default_value = NumberMember(json, where, "default");
    }
    const std::string name = "pe." + option.name;
    const std::string allowed = catalog::CheckValue(option.ToField(name), option.default_value);
    if (!allowed.empty()) Fail(where + ".default must be " + allowed);
    return option;
  }
};

}  // namespace

catalog::Field OwnOption::ToField(const std::string& full_name) const {
  catalog::Field field;
  field.name = full_name;
  field.owner = catalog::OwnPe().name;
  field.type = type;
  field.min = min;
  field.max = max;
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
    if (option.type == FieldType::kBool) {
      one["default"] = std::get<bool>(option.default_value);
    } else {
      one["min"] = option.min;
      one["max"] = option.max;
      if (option.type == FieldType::kInt) {
        one["default"] = std::get<std::int64_t>(option.default_value);
      } else {
        one["default"] = std::get<double>(option.default_value);
      }
    }
    if (!option.help.empty()) one["help"] = option.help;
    options.push_back(std::move(one));
  }
  json["options"] = std::move(options);
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

std::vector<std::pair<std::string, double>> OptionValues(std::string_view text) {
  std::vector<std::pair<std::string, double>> values;
  for (std::size_t at = 0; !text.empty() && at <= text.size();) {
    const std::size_t comma = std::min(text.find(',', at), text.size());
    const std::string_view one = text.substr(at, comma - at);
    const std::size_t equals = std::min(one.find('='), one.size() - 1);
    const std::string_view value = one.substr(equals + 1);
    double number = value == "true" ? 1 : 0;
    std::from_chars(value.data(), value.data() + value.size(), number);
    values.emplace_back(one.substr(0, equals), number);
    at = comma + 1;
  }
  return values;
}

}  // namespace pelab::experiment
