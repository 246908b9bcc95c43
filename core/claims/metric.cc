#include "core/claims/metric.h"

#include <algorithm>

#include "core/base/strings.h"
#include "core/results/metrics.h"

namespace pelab::claims {

const std::vector<std::string>& KindNames() {
  static const auto& names =
      *new std::vector<std::string>{"above", "between", "near", "most", "contrast"};
  return names;
}

std::string NameOf(Kind kind) { return KindNames()[static_cast<std::size_t>(kind)]; }

const std::vector<std::string>& Properties() {
  static const auto& names = *new std::vector<std::string>{kDeposit, kNoDeposit, kStartsDeeper};
  return names;
}

absl::Status CheckMetric(Kind kind, const std::string& metric) {
  if (kind != Kind::kMost) return results::ParseMetric(metric).status();
  const auto& known = Properties();
  if (std::find(known.begin(), known.end(), metric) != known.end()) return absl::OkStatus();
  return absl::InvalidArgumentError(Concat("unknown property \"", metric,
                                           "\" of a seed; known: ", Join(known, ", "),
                                           " (for a number use above or between)"));
}

bool IsFraction(const std::string& metric) {
  const auto parsed = results::ParseMetric(metric);
  return parsed.ok() && (results::IsShare(*parsed) || metric == "max_drop");
}

bool IsAboutAblation(const std::string& metric) {
  const auto& properties = Properties();
  if (std::find(properties.begin(), properties.end(), metric) != properties.end()) return true;
  const auto parsed = results::ParseMetric(metric);
  return parsed.ok() && parsed->source == results::Metric::Source::kDeposit;
}

}  // namespace pelab::claims
