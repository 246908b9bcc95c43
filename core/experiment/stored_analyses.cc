#include "core/experiment/stored_analyses.h"

#include <nlohmann/json.hpp>

namespace pelab::experiment {

std::string StoredAnalysesJson(const std::vector<Analysis>& analyses) {
  nlohmann::json array = nlohmann::json::array();
  for (const Analysis& analysis : analyses) {
    array.push_back({{"name", analysis.name},
                     {"version", analysis.version},
                     {"parameters_json", CanonicalParameters(analysis)}});
  }
  return array.dump();
}

}  // namespace pelab::experiment
