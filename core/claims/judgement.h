// The verdicts of a sheet. Pure functions: thread-safe.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/claims/evidence.h"

namespace pelab::claims {

enum class Verdict {
  kUndecided,
  kHolds,
  kFails,
  // Most of its seeds have learned too little. The others decide nothing, even if all agree.
  kNotEligible,
};
std::string NameOf(Verdict verdict);  // "undecided", "holds", "fails", "not eligible"

std::optional<Verdict> ParseVerdict(std::string_view name);
inline bool IsDecided(Verdict verdict) {
  return verdict == Verdict::kHolds || verdict == Verdict::kFails;
}

struct Judgement {
  Verdict verdict = Verdict::kUndecided;
  // The natural logarithm of the e-value that was enough for the verdict. While the claim is open,
  // that of the e-value which would be enough if this claim were the next to be decided.
  double log_threshold = 0;
};

// Decides among all claims of a sheet at once, so that of its decisions a share of at most `rate`
// is expected to be false (e_bh.h). Each claim has two hypotheses, "holds" and "fails".
std::vector<Judgement> Judge(std::span<const EValues> claims, double rate);

}  // namespace pelab::claims
