// An analysis of a trained job, as a sweep requests it. Pure functions: thread-safe.
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
// Resolves an analysis: the values in `set`, and the protocol's defaults for the rest. `name` must
// be in the catalog (otherwise std::logic_error).
Analysis MakeAnalysis(std::string_view protocol, std::string_view name,
                      const catalog::Values& set = {});
// The parameters alone as RFC 8785 JSON, without the analysis's name: {"method":"zero",…}.
std::string CanonicalParameters(const Analysis& analysis);
// [{"name":…,"version":…,"parameters":{…}}]: the "analyses" of a job document.
std::string ToAnalysesJson(const std::vector<Analysis>& analyses);

}  // namespace pelab::experiment
