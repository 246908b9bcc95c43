// How declarations of files are read. Every function throws DeclarationProblem. Private to
// core/experiment.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/quoted.h"
#include "core/experiment/own_need.h"

namespace pelab::experiment {

struct DeclarationProblem {
  std::string text;  // for people
};
[[noreturn]] void Fail(std::string text);

inline constexpr char kTheDeclaration[] = "the declaration";
inline constexpr double kWidestNumber = 1e15;  // an integer of this size is exact as a double

std::string Listed(const std::vector<std::string_view>& names);

// The members that every declaration has.
struct DeclaredFile {
  std::string name;
  std::string sha256;  // empty if it is not there
  std::uint64_t bytes = 0;
  std::string help;
};
// Parses a declaration of this kind. `members` are those beside format, kind and DeclaredFile's.
nlohmann::json ParseDeclared(std::string_view text, std::string_view kind,
                             std::vector<std::string_view> members, std::uint64_t most_bytes,
                             DeclaredFile* file);

void OnlyMembers(const nlohmann::json& json, const std::string& where,
                 const std::vector<std::string_view>& known);
std::string TextMember(const nlohmann::json& json, const std::string& where, const char* name,
                       std::size_t longest);
bool FlagMember(const nlohmann::json& json, const std::string& where, const char* name);
double NumberMember(const nlohmann::json& json, const std::string& where, const char* name);
std::int64_t IntegerMember(const nlohmann::json& json, const std::string& where, const char* name,
                           std::int64_t least, std::int64_t most);

// The member `needs` of an encoding's declaration, by ascending field, and the same as JSON.
std::vector<OwnNeed> NeedsMember(const nlohmann::json& json);
nlohmann::ordered_json NeedsJson(const std::vector<OwnNeed>& needs);

}  // namespace pelab::experiment
