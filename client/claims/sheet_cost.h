// The cost of settling a claim sheet.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/options/options.h"
#include "client/options/sheet_file.h"
#include "client/source/data_source.h"
#include "client/terminal/style.h"
#include "core/claims/outcomes.h"
#include "core/render/json.h"

namespace pelab::client {

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
  std::string standing = {};      // of a registered sheet, in words; empty: it is not registered
};
SheetCost CostOf(const claims::BoundSheet& sheet, const claims::StoredRows& rows);
// `budget` is slot time in seconds; 0: nobody gave one.
std::string CostText(const claims::BoundSheet& sheet, const SheetCost& cost, double budget,
                     const render::Style& style);
render::Json CostJson(const claims::BoundSheet& sheet, const SheetCost& cost);

// The jobs that a sheet that is not registered is judged on: those of the sweep that was named;
// without a name, those of the stored sweep with the name of the sheet's sweep; if there is none,
// all jobs. Callers take all jobs too if the sweep was not named and has none of the cells.
absl::StatusOr<v1::JobFilter> FilterOf(DataSource& source, const std::string& sweep_option,
                                       const claims::BoundSheet& sheet);

struct CheckOptions {
  std::string sweep;  // whose jobs tell the times; see FilterOf
  double budget = 0;  // see CostText
};
// Prints the cells, jobs and expected time of a sheet, by what is stored. Nothing has to be stored.
absl::StatusOr<int> CheckSheet(const Context& context, const SheetFile& file,
                               const CheckOptions& options = {});

}  // namespace pelab::client
