#include "core/experiment/declaration_json.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/base/json_text.h"
#include "core/catalog/catalog.h"
#include "core/catalog/own.h"
#include "core/experiment/declaration.h"

namespace pelab::experiment {
namespace {

using Json = nlohmann::json;

std::string FullName(const std::string& where, const char* name) { return where + "." + name; }

}  // namespace

void Fail(std::string text) { throw DeclarationProblem{std::move(text)}; }

std::string Listed(const std::vector<std::string_view>& names) {
  std::string list;
  for (const std::string_view name : names) {
    list += (list.empty() ? "" : ", ") + std::string(name);
  }
  return list;
}

Json ParseDeclared(std::string_view text, std::string_view kind,
                   std::vector<std::string_view> members, std::uint64_t most_bytes,
                   DeclaredFile* file) {
  if (text.size() > kMaxDeclarationBytes) {
    Fail("the declaration has " + std::to_string(text.size()) + " bytes; at most " +
         std::to_string(kMaxDeclarationBytes) + " are allowed");
  }
  Json json = ParseJson(text);
  if (!json.is_object()) Fail("the declaration is not a JSON object");
  for (const char* name : {"format", "kind", "name", "sha256", "bytes", "help"}) {
    members.emplace_back(name);
  }
  OnlyMembers(json, kTheDeclaration, members);
  const auto format = json.find("format");
  if (format == json.end() || IntegerOf<int>(*format) != 1) {
    Fail("the declaration's format must be 1");
  }
  if (TextMember(json, kTheDeclaration, "kind", 20) != kind) {
    Fail("the declaration's kind must be \"" + std::string(kind) + "\"");
  }
  file->name = TextMember(json, kTheDeclaration, "name", 100);
  if (!catalog::IsOwnName(file->name)) {
    Fail("the " + std::string(kind) + "'s name " + Quoted(file->name) + " must be " +
         std::string(catalog::kOwnNameRule));
  }
  file->sha256 = TextMember(json, kTheDeclaration, "sha256", 64);
  if (!file->sha256.empty() && !catalog::IsHash(file->sha256)) {
    Fail("the declaration's sha256 must be 64 hexadecimal digits in lower case");
  }
  if (json.contains("bytes")) {
    const auto bytes = IntegerOf<std::uint64_t>(json["bytes"]);
    if (!bytes || *bytes > most_bytes) {
      Fail("the declaration's bytes must be an integer of at most " + std::to_string(most_bytes));
    }
    file->bytes = *bytes;
  }
  file->help = TextMember(json, kTheDeclaration, "help", 300);
  return json;
}

void OnlyMembers(const Json& json, const std::string& where,
                 const std::vector<std::string_view>& known) {
  for (const auto& [name, value] : json.items()) {
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    const std::string near(catalog::DidYouMean(name, known));
    Fail(where + " has an unknown member " + Quoted(name) +
         (near.empty() ? "" : "; did you mean " + near + "?"));
  }
}

std::string TextMember(const Json& json, const std::string& where, const char* name,
                       std::size_t longest) {
  const auto found = json.find(name);
  if (found == json.end()) return "";
  if (!found->is_string() || found->get_ref<const std::string&>().size() > longest) {
    Fail(FullName(where, name) + " must be text of at most " + std::to_string(longest) + " bytes");
  }
  return found->get<std::string>();
}

bool FlagMember(const Json& json, const std::string& where, const char* name) {
  const auto found = json.find(name);
  if (found == json.end()) return false;
  if (!found->is_boolean()) Fail(FullName(where, name) + " must be true or false");
  return found->get<bool>();
}

double NumberMember(const Json& json, const std::string& where, const char* name) {
  const auto found = json.find(name);
  if (found == json.end() || !found->is_number()) {
    Fail(FullName(where, name) + " must be a number");
  }
  const double number = found->get<double>();
  if (!std::isfinite(number) || std::abs(number) > kWidestNumber) {
    Fail(FullName(where, name) + " must be between -1e15 and 1e15");
  }
  return number;
}

std::int64_t IntegerMember(const Json& json, const std::string& where, const char* name,
                           std::int64_t least, std::int64_t most) {
  const auto found = json.find(name);
  const auto number = found == json.end() ? std::nullopt : IntegerOf<std::int64_t>(*found);
  if (!number || *number < least || *number > most) {
    Fail(FullName(where, name) + " must be an integer from " + std::to_string(least) + " to " +
         std::to_string(most));
  }
  return *number;
}

}  // namespace pelab::experiment
