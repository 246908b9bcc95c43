#include "core/claims/judgement.h"

#include "core/stats/e_bh.h"

namespace pelab::claims {

std::string NameOf(Verdict verdict) {
  switch (verdict) {
    case Verdict::kUndecided:
      return "undecided";
    case Verdict::kHolds:
      return "holds";
    case Verdict::kFails:
      return "fails";
    case Verdict::kNotEligible:
      return "not eligible";
  }
  return "";
}

std::vector<Judgement> Judge(std::span<const Evidence> claims, double rate) {
  std::vector<double> logs;
  for (const Evidence& claim : claims) {
    logs.push_back(claim.log_e_holds);
    logs.push_back(claim.log_e_fails);
  }
  const stats::Rejections found = stats::EBh(logs, rate);
  std::vector<Judgement> judgements;
  for (std::size_t i = 0; i < claims.size(); ++i) {
    const bool holds = found.rejected[2 * i], fails = found.rejected[2 * i + 1];
    const auto seeds = static_cast<std::int64_t>(claims[i].seeds.size());
    Judgement judgement;
    // Never both: a seed is a success of one of them at most.
    if (holds || fails) {
      judgement.verdict = holds ? Verdict::kHolds : Verdict::kFails;
    } else if (2 * claims[i].eligible < seeds) {
      judgement.verdict = Verdict::kNotEligible;
    }
    judgement.log_threshold = holds || fails ? found.log_threshold : found.log_next_threshold;
    judgements.push_back(judgement);
  }
  return judgements;
}

}  // namespace pelab::claims
