// Judges the paper's claims on the groups of a report, by the rules in
// docs/sweeps/verdict/claims.json. docs/sweeps/verdict/claims.py judges them independently from the
// same file. Pure functions: thread-safe.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "client/report/claim_cells.h"
#include "core/render/json.h"

namespace pelab::client::report {

struct Outcome {
  std::string verdict;  // "holds", "fails", "undecided", or why the claim cannot be judged
  std::string ours;     // our numbers, in points, with 95 % intervals
};

// Applies one rule of the file under one protocol; nullopt if the groups lack what the rule needs.
std::optional<Outcome> Judge(const std::vector<ClaimCell>& cells, const std::string& protocol,
                             const std::string& task, const render::Json& rule);

// {"claims": [{"figure", "text", "paper", "protocol", "ours", "verdict"}], "rules", "source"}, for
// the claims that can be judged, in the file's order.
render::Json Paper(const ReportInput& input);

}  // namespace pelab::client::report
