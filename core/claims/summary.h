// The figures that are shown beside a claim's verdict. Pure functions: thread-safe.
#pragma once

#include <string>

#include "core/claims/evidence.h"
#include "core/claims/sheet.h"
#include "core/render/json.h"
#include "core/stats/e_value.h"
#include "core/stats/share_sequence.h"

namespace pelab::claims {

struct Summary {
  Kind kind = Kind::kAbove;
  bool leans_to_hold = true;  // the seeds speak for the claim rather than against it
  // The side that decides: of a claim that the seeds speak for, its weakest side; otherwise the
  // strongest side of "fails".
  SideEvidence leading;
  stats::SignCount shows;    // the seeds on the side of "holds" that fewest show
  stats::ShareLimits share;  // of all seeds, those that show it
  Estimate estimate;         // of the leading side's statistic
  double slot_seconds = 0;
};
Summary SummaryOf(Kind kind, const Evidence& evidence);

// "holds" or "fails": what the seeds speak for.
std::string LeansTo(const Summary& summary);

// Members of a claim in documents (docs/formats.md, "Evidence and verdicts").
render::Json ToJson(const Summary& summary);

}  // namespace pelab::claims
