// Overrides on their way into the database and back.
#include <nlohmann/json.hpp>

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

std::vector<spec::Override> OverridesFromJson(const std::string& json) {
  std::vector<spec::Override> overrides;
  const auto array = nlohmann::json::parse(json, nullptr, /*allow_exceptions=*/false);
  if (!array.is_array()) return overrides;
  for (const auto& item : array) {
    overrides.push_back({item.value("field", ""), item.value("value", "")});
  }
  return overrides;
}

}  // namespace pelab::service
