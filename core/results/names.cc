#include "core/results/names.h"

#include <string_view>

#include "absl/strings/ascii.h"

namespace pelab::results {
namespace {

std::string LowerAfter(std::string_view prefix, const std::string& name) {
  return name.size() > prefix.size() ? absl::AsciiStrToLower(name.substr(prefix.size()))
                                     : "unknown";
}

}  // namespace

std::string StateName(v1::JobState state) {
  return LowerAfter("JOB_STATE_", v1::JobState_Name(state));
}
std::string StateName(v1::SweepState state) {
  return LowerAfter("SWEEP_STATE_", v1::SweepState_Name(state));
}
std::string OutcomeName(v1::AttemptOutcome outcome) {
  if (outcome == v1::ATTEMPT_OUTCOME_UNSPECIFIED) return "open";
  return LowerAfter("ATTEMPT_OUTCOME_", v1::AttemptOutcome_Name(outcome));
}

}  // namespace pelab::results
