// The paper's claims, judged on the cells of a report by the rules that docs/sweeps/verdict/claims.json
// states. docs/sweeps/verdict/claims.py judges the same from the same file, independently. Pure
// functions: thread-safe.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "client/report/claim_cells.h"
#include "core/render/json.h"

namespace pelab::client::report {

struct Outcome {
  std::string verdict;  // "holds", "fails", "undecided", or why it is not comparable
  std::string ours;     // in points, with 95 % intervals
};

// By a rule of the file, under one protocol; nullopt where the cells lack what it is about.
std::optional<Outcome> Judge(const std::vector<ClaimCell>& cells, const std::string& protocol,
                             const std::string& task, const render::Json& rule);

// {"claims": [{"figure", "text", "paper", "protocol", "ours", "verdict"}], "rules", "source"}, of the
// claims that can be judged, in the file's order.
render::Json Paper(const ReportInput& input);

}  // namespace pelab::client::report
