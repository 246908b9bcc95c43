// Converts overrides to the database's form and back.
#include <nlohmann/json.hpp>

#include "core/base/json_text.h"
#include "server/service/sweeps_service.h"

namespace pelab::service {
namespace {

using Overrides = google::protobuf::RepeatedPtrField<v1::Override>;

}  // namespace

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
