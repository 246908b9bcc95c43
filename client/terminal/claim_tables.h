// The verdicts of a claim sheet, and what it takes to reach them, as tables and JSON. Pure
// functions: thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "client/terminal/style.h"
#include "core/claims/binding.h"
#include "core/claims/evidence.h"
#include "core/claims/judgement.h"
#include "core/render/json.h"

namespace pelab::client {

// A sheet with what the stored seeds say. One element for each of the sheet's bound claims.
struct JudgedSheet {
  const claims::BoundSheet* sheet = nullptr;
  std::string sha256;
  std::string source;  // of the results, for people
  std::vector<claims::Evidence> evidence;
  std::vector<claims::Judgement> judgements;
};
std::string VerdictsText(const JudgedSheet& judged, const render::Style& style);
// {"sheet", "sha256", "false_discovery_rate", "claims": [{"id", "says", "source", "kind", "metric",
// "verdict", "e_holds", "e_fails", "threshold", "seeds", "eligible", "sides", "statistics"}]}
render::Json VerdictsJson(const JudgedSheet& judged);
std::vector<std::string> VerdictColumns();
render::Json VerdictRows(const JudgedSheet& judged);  // for CSV: without the nested members

// One of the sheet's cells: how many claims need it, and its stored seeds.
struct CellCost {
  std::size_t configuration = 0;
  int claims = 0;                          // that are about it
  std::int64_t stored = 0;                 // seeds with a result
  std::optional<double> seconds_per_seed;  // nullopt: none of it is known
};
struct SheetCost {
  std::vector<CellCost> cells;  // that some claim is about
  // The slot time of one seed of every cell. Cells without stored times are taken as the mean of
  // the others; nullopt if there are none.
  std::optional<double> seconds_per_seed;
  std::size_t without_times = 0;
  std::int64_t fewest_seeds = 0;  // with which a claim can be decided, if all agree
};
std::string CostText(const claims::BoundSheet& sheet, const SheetCost& cost,
                     const render::Style& style);
render::Json CostJson(const claims::BoundSheet& sheet, const SheetCost& cost);

}  // namespace pelab::client
