// Finds the configurations of a sweep that each claim of a sheet compares, and the limits with
// which the claim compares the values of a seed. Pure functions: thread-safe.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "core/claims/sheet.h"
#include "core/experiment/sweep.h"

namespace pelab::claims {

// One cell of a sum: its position in BoundSheet::configurations.
struct BoundTerm {
  std::size_t configuration = 0;
  double weight = 1;
};
// Cells with weights. A seed gives one number: the weighted sum of their values.
using Statistic = std::vector<BoundTerm>;

// A side: above a limit or below it. A seed counts for the side on which its sum lies. A sum that
// equals the limit, up to rounding, counts for neither.
struct Side {
  std::size_t statistic = 0;  // in BoundClaim::statistics
  bool above = true;
  double limit = 0;
};

// A claim, or, if it has the key `each`, the claim for one combination of the values of the fields
// that `each` lists.
struct BoundClaim {
  std::size_t claim = 0;          // in Sheet::claims
  std::string id;                 // "rope-above-nope", with `each` "rope-above-nope[clean]"
  std::vector<std::string> each;  // the values of the fields in Claim::each
  std::vector<Statistic> statistics;
  // The claim is true if each of these sides has more than half of all possible seeds on it.
  std::vector<Side> holds;
  // The claim is false if one of these sides has more than half of all possible seeds on it.
  std::vector<Side> fails;
};

struct BoundSheet {
  Sheet sheet;
  experiment::Sweep sweep;                       // with seed 0 alone
  std::vector<experiment::Cell> configurations;  // the sweep's cells of seed 0
  std::vector<BoundClaim> claims;                // in the order of the sheet
};
struct BindResult {
  std::optional<BoundSheet> bound;
  std::vector<experiment::Violation> violations;  // empty if and only if `bound` is set
};

// Parses the sheet's sweep, with seed 0 in place of its seeds. `document` is the content of the
// sheet's sweep file, or the sweep that stands in the sheet. In the second case, violations have
// the place of the key `sweep` in the sheet.
experiment::SweepResult ParseSweepOf(const Sheet& sheet, const std::string& document);

// Finds the cells of all claims in `sweep`, which comes from ParseSweepOf. It is a violation if the
// condition of a term matches no configuration or several, or if a claim's `where` matches none.
BindResult Bind(const Sheet& sheet, const experiment::Sweep& sweep);

// INVALID_ARGUMENT if a claim needs an analysis that the sheet's sweep does not ask for. The jobs
// of the sweep would then never give the claim its values.
absl::Status CheckCanBeSettled(const BoundSheet& sheet);

// A sheet's identity: the SHA-256 of the sheet's bytes, a NUL, and the bytes of its sweep.
std::string HashOf(const std::string& sheet_document, const std::string& sweep_document);

}  // namespace pelab::claims
