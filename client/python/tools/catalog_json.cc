// Prints the part of the catalog that the Python package needs, as JSON: the names of PEs, tasks
// and protocols, and each job field with its owner, type, choices and legacy value. Runs at build
// time.
#include <iostream>
#include <nlohmann/json.hpp>
#include <vector>

#include "core/catalog/catalog.h"

namespace pelab {
namespace {

using Json = nlohmann::ordered_json;

Json NamesOf(const std::vector<catalog::Entry>& entries) {
  Json names = Json::array();
  for (const catalog::Entry& entry : entries) names.push_back(entry.name);
  return names;
}

Json FieldJson(const catalog::Field& field) {
  Json json = {{"name", field.name},
               {"owner", field.owner},
               {"type", catalog::FieldTypeName(field.type)},
               {"choices", field.choices}};
  if (field.legacy) {
    json["legacy"] = std::visit([](const auto& value) { return Json(value); }, *field.legacy);
  }
  return json;
}

Json CatalogJson() {
  Json fields = Json::array();
  for (const catalog::Field& field : catalog::Fields()) {
    if (!catalog::IsAnalysisField(field)) fields.push_back(FieldJson(field));
  }
  return {{"pe", NamesOf(catalog::Pes())},
          {"task", NamesOf(catalog::Tasks())},
          {"protocol", NamesOf(catalog::Protocols())},
          {"fields", fields}};
}

}  // namespace
}  // namespace pelab

int main() { std::cout << pelab::CatalogJson().dump(1) << "\n"; }
