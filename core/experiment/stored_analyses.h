// The form in which databases keep the analyses that a sweep or an attempt asks for. A pure
// function: thread-safe.
#pragma once

#include <string>
#include <vector>

#include "core/experiment/analysis.h"

namespace pelab::experiment {

// [{"name":…,"version":…,"parameters_json":"…"}]: `analyses_json` of a sweep and of an attempt.
std::string StoredAnalysesJson(const std::vector<Analysis>& analyses);

}  // namespace pelab::experiment
