#include "core/claims/judgement.h"

#include <limits>

#include "core/stats/e_bh.h"

namespace pelab::claims {

namespace {

// Few seeds may agree by luck of which of them have learned enough.
bool HaveMostLearnedTooLittle(const EValues& claim) { return 2 * claim.eligible < claim.seeds; }

constexpr std::pair<Verdict, const char*> kVerdicts[] = {{Verdict::kUndecided, "undecided"},
                                                         {Verdict::kHolds, "holds"},
                                                         {Verdict::kFails, "fails"},
                                                         {Verdict::kNotEligible, "not eligible"}};

}  // namespace

std::string NameOf(Verdict verdict) {
  for (const auto& [value, name] : kVerdicts) {
    if (value == verdict) return name;
  }
  return "";
}

std::optional<Verdict> ParseVerdict(std::string_view name) {
  for (const auto& [value, its] : kVerdicts) {
    if (its == name) return value;
  }
  return std::nullopt;
}

std::vector<Judgement> Judge(std::span<const EValues> claims, double rate) {
  std::vector<double> logs;
  constexpr double kNoEvidence = -std::numeric_limits<double>::infinity();
  for (const EValues& claim : claims) {
    const bool counts = !HaveMostLearnedTooLittle(claim);
    logs.push_back(counts ? claim.log_holds : kNoEvidence);
    logs.push_back(counts ? claim.log_fails : kNoEvidence);
  }
  const stats::Rejections found = stats::EBh(logs, rate);
  std::vector<Judgement> judgements;
  for (std::size_t i = 0; i < claims.size(); ++i) {
    const bool holds = found.rejected[2 * i], fails = found.rejected[2 * i + 1];
    Judgement judgement;
    // Never both: a seed is a success of one of them at most.
    if (holds || fails) {
      judgement.verdict = holds ? Verdict::kHolds : Verdict::kFails;
    } else if (HaveMostLearnedTooLittle(claims[i])) {
      judgement.verdict = Verdict::kNotEligible;
    }
    judgement.log_threshold = holds || fails ? found.log_threshold : found.log_next_threshold;
    judgements.push_back(judgement);
  }
  return judgements;
}

}  // namespace pelab::claims
