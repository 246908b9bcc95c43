// Writes the canonical form by hand: RFC 8785 fixes every byte, and general JSON writers spell
// numbers differently.
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/experiment/analysis.h"
#include "core/experiment/canonical_json.h"
#include "core/experiment/check.h"
#include "core/experiment/job.h"

namespace pelab::experiment {
namespace {

using catalog::Field;
using catalog::Value;
using Json = nlohmann::json;

// Member name -> rendered value, in the order that RFC 8785 requires (names are ASCII, so the
// orders of bytes and of UTF-16 units agree).
using Members = std::map<std::string, std::string, std::less<>>;

std::string Quote(std::string_view text) {
  return Json(std::string(text)).dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string Render(const Members& members) {
  std::string json = "{";
  for (const auto& [name, value] : members) {
    if (json.size() > 1) json += ',';
    json.append(1, '"').append(name).append("\":").append(value);
  }
  return json + "}";
}

template <typename Member, typename ToJson>
std::string RenderList(const std::vector<Member>& members, ToJson to_json) {
  std::string json = "[";
  for (const Member& member : members) {
    if (json.size() > 1) json += ',';
    json += to_json(member);
  }
  return json + "]";
}

std::string Render(const Value& value) {
  if (const auto* text = std::get_if<std::string>(&value)) return Quote(*text);
  if (const auto* set = std::get_if<std::vector<std::string>>(&value)) {
    return RenderList(*set, Quote);
  }
  if (const auto* numbers = std::get_if<std::vector<std::int64_t>>(&value)) {
    return RenderList(*numbers, [](std::int64_t number) { return std::to_string(number); });
  }
  return catalog::ToText(value);
}

}  // namespace

std::string CanonicalParameters(const Analysis& analysis) {
  Members members;
  for (const auto& [field, value] : analysis.parameters) {
    members.emplace(SplitName(field).second, Render(value));
  }
  return Render(members);
}

std::string ToAnalysesJson(const std::vector<Analysis>& analyses) {
  return RenderList(analyses, [](const Analysis& analysis) {
    return Render(Members{{"name", Quote(analysis.name)},
                          {"parameters", CanonicalParameters(analysis)},
                          {"version", std::to_string(analysis.version)}});
  });
}

std::string ToCanonicalJson(const Job& job) {
  std::map<std::string_view, Members> groups = {
      {"model", {}},
      {"train", {}},
      {"pe", {{"name", Quote(job.pe)}, {"version", std::to_string(job.pe_version)}}},
      {"task", {{"name", Quote(job.task)}, {"version", std::to_string(job.task_version)}}}};
  for (const Field& field : catalog::Fields()) {
    if (!field.owner.empty() && field.owner != job.pe && field.owner != job.task) continue;
    const auto value = job.values.find(field.name);
    if (value == job.values.end() || (field.legacy && *field.legacy == value->second)) continue;
    const auto [group, member] = SplitName(field.name);
    groups[group].emplace(member, Render(value->second));
  }
  Members members = {{"format", std::to_string(catalog::kCanonicalFormat)},
                     {"seed", std::to_string(job.seed)}};
  for (const auto& [group, fields] : groups) members.emplace(group, Render(fields));
  return Render(members);
}

}  // namespace pelab::experiment
