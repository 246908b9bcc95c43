#include "server/sched/capabilities.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "core/base/duration.h"
#include "core/base/json_text.h"
#include "core/experiment/job.h"

namespace pelab::sched {
namespace {

// The name of the encoding, and of the task, that come from a file (core/catalog/entries.cc).
constexpr char kOwn[] = "own";

using Versions = std::map<std::string, std::vector<int>>;

std::optional<Versions> ReadList(const nlohmann::json& object, const char* name) {
  const auto list = object.find(name);
  if (list == object.end() || !list->is_array()) return std::nullopt;
  Versions versions;
  for (const auto& entry : *list) {
    if (!entry.is_object() || !entry.contains("name") || !entry["name"].is_string()) continue;
    const auto version = entry.find("version");
    const auto number = version == entry.end() ? std::nullopt : IntegerOf<int>(*version);
    versions[entry["name"].get<std::string>()].push_back(number.value_or(0));
  }
  return versions;
}

std::string Lacks(const std::optional<Versions>& has, const char* what, const std::string& name,
                  int version) {
  if (!has) return "";
  const auto found = has->find(name);
  if (found == has->end()) return absl::StrCat("its trainer has no ", what, " ", name);
  const auto& versions = found->second;
  if (std::find(versions.begin(), versions.end(), version) != versions.end()) return "";
  return absl::StrCat("its trainer has ", what, " ", name, " in version ", versions.front(),
                      ", not ", version);
}

}  // namespace

absl::StatusOr<Capabilities> Capabilities::Parse(const std::string& json) {
  Capabilities capabilities;
  if (json.empty()) return capabilities;
  const auto object = ParseJson(json);
  if (!object.is_object()) {
    return absl::InvalidArgumentError("the trainer's capabilities are not a JSON object");
  }
  capabilities.pes_ = ReadList(object, "pes");
  capabilities.tasks_ = ReadList(object, "tasks");
  capabilities.analyses_ = ReadList(object, "analyses");
  return capabilities;
}

std::string Capabilities::WhyNot(const Slot& slot, const store::Requirement& requirement) const {
  if (requirement.device_kind != "any" && requirement.device_kind != slot.device_kind) {
    return absl::StrCat("its slot is a ", slot.device_kind, ", not a ", requirement.device_kind);
  }
  if (slot.memory_bytes != 0 && requirement.memory_bytes > slot.memory_bytes) {
    return absl::StrCat("its slot has ", FormatByteSize(slot.memory_bytes), " of memory, not ",
                        FormatByteSize(requirement.memory_bytes));
  }
  const std::string task(experiment::TaskOfLabel(requirement.task));
  if (!fetches_files_ && (requirement.pe == kOwn || task == kOwn)) {
    return "it is of a release without own encodings and own data; upgrade its pelab-worker";
  }
  std::string lacks = Lacks(pes_, "pe", requirement.pe, requirement.pe_version);
  if (!lacks.empty()) return lacks;
  lacks = Lacks(tasks_, "task", task, requirement.task_version);
  for (const auto& [name, version] : requirement.analyses) {
    if (!lacks.empty()) break;
    lacks = Lacks(analyses_, "analysis", name, version);
  }
  return lacks;
}

}  // namespace pelab::sched
