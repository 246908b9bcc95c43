#include "worker/agent/capabilities.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/base/json_text.h"
#include "core/base/process.h"
#include "core/base/status.h"
#include "core/base/utf8.h"
#include "core/catalog/catalog.h"
#include "worker/agent/limits.h"
#include "worker/agent/run_program.h"

namespace pelab::agent {
namespace {

using Json = nlohmann::json;

// False only if the trainer lists its devices and none of them is a GPU. Older trainers list none.
bool SeesCuda(const Json& object) {
  const auto devices = object.find("devices");
  if (devices == object.end() || !devices->is_array()) return true;
  return std::any_of(devices->begin(), devices->end(), [](const Json& device) {
    if (device.is_string()) return absl::StartsWith(device.get<std::string>(), "cuda");
    return device.is_object() && absl::StrContains(device.dump(), "cuda");
  });
}

// Whether the trainer knows the requests of this release.
bool Preloads(const Json& object) {
  constexpr int kVersion = 1;
  const auto version = object.find("preload");
  return version != object.end() && IntegerOf<int>(*version) == kVersion;
}

std::vector<std::pair<std::string, std::string>> VariablesOf(const Json& object) {
  std::vector<std::pair<std::string, std::string>> environment;
  const auto asked = object.find("environment");
  if (asked == object.end() || !asked->is_object()) return environment;
  for (const auto& [name, value] : asked->items()) {
    if (value.is_string()) environment.emplace_back(name, value.get<std::string>());
  }
  return environment;
}

}  // namespace

Capabilities WithoutOwnEncodings(Capabilities capabilities) {
  Json object = ParseJson<Json>(capabilities.json);
  const auto pes = object.find("pes");
  if (pes == object.end() || !pes->is_array()) return capabilities;
  std::erase_if(pes->get_ref<Json::array_t&>(), [](const Json& pe) {
    return pe.is_object() && pe.contains("name") && pe["name"] == catalog::OwnPe().name;
  });
  capabilities.json = object.dump();
  return capabilities;
}

absl::StatusOr<std::string> FindTrainer(const std::string& given) {
  if (given.empty()) {
    absl::StatusOr<std::string> found = FindProgram("pelab-trainer");
    if (!found.ok()) return Annotate(found.status(), "--trainer is not given");
    return found;
  }
  if (access(given.c_str(), X_OK) != 0)
    return ErrnoStatus(errno, absl::StrCat("cannot run --trainer ", given));
  std::error_code error;
  const std::string absolute =
      std::filesystem::absolute(given, error).string();  // trainers start in other directories
  if (error) return ErrnoStatus(error.value(), absl::StrCat("cannot run --trainer ", given));
  return absolute;
}

absl::StatusOr<Capabilities> ReadCapabilities(const std::string& trainer,
                                              PreloadedTrainer* preloaded, absl::Duration timeout) {
  SpawnOptions options;
  options.argv = {trainer, "capabilities"};
  const std::string what = absl::StrCat("\"", trainer, " capabilities\"");
  PELAB_ASSIGN_OR_RETURN(
      const ProgramOutput output,
      RunProgram(std::move(options), what, {timeout, limits::kCapabilitiesBytes}, preloaded));
  const Json object = ParseJson<Json>(output.out);
  if (!object.is_object()) {
    return absl::FailedPreconditionError(
        absl::StrCat(what, " printed no JSON object of at most ", kMaxJsonDepth, " levels but \"",
                     Shorten(std::string(absl::StripAsciiWhitespace(output.out)), 200),
                     "\"; is it a pelab-trainer?"));
  }
  return Capabilities{object.dump(), Preloads(object), SeesCuda(object), VariablesOf(object)};
}

}  // namespace pelab::agent
