// The metrics that claims may name. Pure functions: thread-safe.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "core/claims/sheet.h"

namespace pelab::claims {

// Properties of a seed's head ablation, for the kind "most".
inline constexpr char kDeposit[] = "deposit";  // one head holds a layer's work
inline constexpr char kNoDeposit[] = "no_deposit";
inline constexpr char kStartsDeeper[] = "top_deeper";  // the largest drop is not in the first layer

// The kinds, as they are written in a sheet: "above", "between", "near", "most", "contrast".
const std::vector<std::string>& KindNames();
std::string NameOf(Kind kind);

// "deposit", "no_deposit", "top_deeper".
const std::vector<std::string>& Properties();

// INVALID_ARGUMENT, with the known names, if claims of this kind cannot be about the metric.
absl::Status CheckMetric(Kind kind, const std::string& metric);

// Whether the metric lies in 0 to 1, so that differences lie in -1 to 1.
bool IsFraction(const std::string& metric);

// The metrics of a claim: what it is about, and what makes a seed eligible.
std::vector<std::string> MetricsOf(const Claim& claim);

// The analysis whose result the metric needs, such as "head_ablation"; empty: none.
std::string_view AnalysisOf(const std::string& metric);

// Whether the metric is about what removing something costs. Such a claim is judged only on seeds
// that have learned something.
bool IsAboutAblation(const std::string& metric);

}  // namespace pelab::claims
