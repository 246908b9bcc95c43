#include "core/claims/judgement.h"

#include "core/stats/e_bh.h"

namespace pelab::claims {

namespace {

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
  for (const EValues& claim : claims) {
    logs.push_back(claim.log_holds);
    logs.push_back(claim.log_fails);
  }
  const stats::Rejections found = stats::EBh(logs, rate);
  std::vector<Judgement> judgements;
  for (std::size_t i = 0; i < claims.size(); ++i) {
    const bool holds = found.rejected[2 * i], fails = found.rejected[2 * i + 1];
    Judgement judgement;
    // Never both: a seed is a success of one of them at most.
    if (holds || fails) {
      judgement.verdict = holds ? Verdict::kHolds : Verdict::kFails;
    } else if (2 * claims[i].eligible < claims[i].seeds) {
      judgement.verdict = Verdict::kNotEligible;
    }
    judgement.log_threshold = holds || fails ? found.log_threshold : found.log_next_threshold;
    judgements.push_back(judgement);
  }
  return judgements;
}

}  // namespace pelab::claims
