#include "core/claims/summary.h"

#include <algorithm>

#include "core/claims/metric.h"

namespace pelab::claims {
namespace {

bool IsWeaker(const SideEvidence& a, const SideEvidence& b) { return a.log_e < b.log_e; }

}  // namespace

Summary SummaryOf(Kind kind, const Evidence& evidence) {
  const SideEvidence& weakest =
      *std::min_element(evidence.holds.begin(), evidence.holds.end(), IsWeaker);
  Summary summary{.kind = kind,
                  .leans_to_hold = evidence.e.log_holds >= evidence.e.log_fails,
                  .leading = weakest,
                  .shows = weakest.count,
                  .share = stats::ShareSequence(weakest.count),
                  .estimate = {},
                  .slot_seconds = evidence.slot_seconds};
  if (!summary.leans_to_hold) {
    summary.leading = *std::max_element(evidence.fails.begin(), evidence.fails.end(), IsWeaker);
  }
  summary.estimate = EstimateOf(evidence, summary.leading.side.statistic);
  return summary;
}

std::string LeansTo(const Summary& summary) { return summary.leans_to_hold ? "holds" : "fails"; }

render::Json ToJson(const Summary& summary) {
  const Estimate& estimate = summary.estimate;
  return {{"kind", NameOf(summary.kind)},
          {"leans_to", LeansTo(summary)},
          {"k", summary.leading.count.successes},
          {"n", summary.leading.count.trials},
          {"shows", summary.shows.successes},
          {"share_low", summary.share.low},
          {"share_high", summary.share.high},
          {"mean", render::OrNull(estimate.mean)},
          {"t_half_width", render::OrNull(estimate.t_half_width)},
          {"median_low", render::FiniteOrNull(estimate.median.low)},
          {"median_high", render::FiniteOrNull(estimate.median.high)},
          {"slot_seconds", summary.slot_seconds}};
}

}  // namespace pelab::claims
