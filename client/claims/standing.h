// How far a registered sheet has come.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>

#include "core/base/strings.h"
#include "core/render/text.h"

namespace pelab::client {

// "2 of 16 claims decided, 11 open, 2 given up, 1 put aside". `rows` are v1::SheetClaimRow after
// the last round that ended. Before the first one there are none, and all `claims` of the sheet
// are open.
template <class Rows>
std::string StandingText(const Rows& rows, std::size_t claims) {
  std::map<std::string, std::size_t> counts;
  for (const auto& row : rows) ++counts[row.standing()];
  if (rows.empty()) counts["open"] = claims;
  std::string text =
      Concat(counts["decided"], " of ", render::Counted(static_cast<std::int64_t>(claims), "claim"),
             " decided, ", counts["open"], " open");
  const std::size_t given_up = counts["all seeds"] + counts["futile"];
  if (given_up > 0) text += Concat(", ", given_up, " given up");
  if (counts["put aside"] > 0) text += Concat(", ", counts["put aside"], " put aside");
  return text;
}

}  // namespace pelab::client
