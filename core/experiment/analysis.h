// An analysis of a trained job, as a sweep asks for it. Pure functions: thread-safe.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/catalog/catalog.h"

namespace pelab::experiment {

// An analysis with all its parameters resolved.
struct Analysis {
  std::string name;
  int version = 0;
  catalog::Values parameters;  // by full name: "head_ablation.method"
};
// With the protocol's default where `set` has no value; the name must be in the catalog.
Analysis MakeAnalysis(std::string_view protocol, std::string_view name,
                      const catalog::Values& set = {});
// RFC 8785 JSON of the parameters alone, without the analysis's name: {"method":"zero",…}.
std::string CanonicalParameters(const Analysis& analysis);
// [{"name":…,"version":…,"parameters":{…}}], as a job document has them.
std::string ToAnalysesJson(const std::vector<Analysis>& analyses);

}  // namespace pelab::experiment
