// Converts parts of documents to the database's form and back.
#include <nlohmann/json.hpp>

#include "core/base/json_text.h"
#include "core/experiment/analysis.h"
#include "server/service/sweeps_service.h"

namespace pelab::service {
namespace {

using Overrides = google::protobuf::RepeatedPtrField<v1::Override>;

}  // namespace

std::string AnalysesJson(const std::vector<experiment::Analysis>& analyses) {
  nlohmann::json array = nlohmann::json::array();
  for (const experiment::Analysis& analysis : analyses) {
    array.push_back({{"name", analysis.name},
                     {"version", analysis.version},
                     {"parameters_json", experiment::CanonicalParameters(analysis)}});
  }
  return array.dump();
}

std::string ResourcesJson(const experiment::Resources& resources) {
  return nlohmann::json{{"device", resources.device}, {"memory_bytes", resources.memory_bytes}}
      .dump();
}

std::string OverridesToJson(const Overrides& overrides) {
  nlohmann::json array = nlohmann::json::array();
  for (const v1::Override& override : overrides) {
    array.push_back({{"field", override.field()}, {"value", override.value()}});
  }
  return array.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::vector<experiment::Override> OverridesFromJson(const std::string& json) {
  std::vector<experiment::Override> overrides;
  const auto array = ParseJson(json);
  if (!array.is_array()) return overrides;
  for (const auto& item : array) {
    if (!item.is_object()) continue;
    overrides.push_back({item.value("field", ""), item.value("value", "")});
  }
  return overrides;
}

}  // namespace pelab::service
