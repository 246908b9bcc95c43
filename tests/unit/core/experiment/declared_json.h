// Declarations of files, written by hand for tests.
#pragma once

#include <map>
#include <string>

namespace pelab::experiment {

// A JSON object with these members, whose values are JSON. Members with an empty value are left
// out.
inline std::string ObjectOf(const std::map<std::string, std::string>& members) {
  std::string json = "{";
  for (const auto& [name, value] : members) {
    if (value.empty()) continue;
    json += (json.size() > 1 ? "," : "") + ("\"" + name + "\":") + value;
  }
  return json + "}";
}

}  // namespace pelab::experiment
