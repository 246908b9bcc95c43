// Head ablations judged, and put together over seeds. Pure functions: thread-safe.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/render/json.h"
#include "core/results/cells.h"
#include "core/results/variants.h"
#include "pelab/v1/results.pb.h"

namespace pelab::results {

enum class AblationMetric {
  kAccuracyDrop,    // intact minus ablated accuracy
  kNllDrop,         // what ablation adds to the mean loss, in nats
  kNormalisedDrop,  // the accuracy drop over what the intact model has above chance
};
// "accuracy_drop", "nll_drop", "normalised_drop"; INVALID_ARGUMENT.
absl::StatusOr<AblationMetric> ParseAblationMetric(const std::string& name);

// What a head is worth, with what its examples say about the error.
struct EntryDrop {
  double value = 0;
  std::optional<double> standard_error;  // of the paired change; not in ablations of version 1
  // More than 3 standard errors, or nothing is known of them. Otherwise the drop is shown as 0.
  bool counts = true;

  double shown() const { return counts ? value : 0; }
  // Value ± 1.96 standard errors.
  std::optional<double> half_width() const;
};
EntryDrop Judge(double value, const std::optional<double>& standard_error);

// nullopt where the matrix has no such entry, or where the measure means nothing (a normalised drop
// of a model that does not stand out from chance).
std::optional<EntryDrop> DropOf(const v1::HeadAblationRow& row, AblationMetric metric);

// The seeds of one cell and variant of the ablation: the mean of what is shown of each.
struct MeanAblation {
  const Cell* cell = nullptr;  // of the table that it was built from
  Variant variant;
  std::size_t seeds = 0;  // that have one
  int layers = 0;
  int heads = 0;
  std::vector<std::optional<double>> drops;  // row-major; nullopt where no seed has such an entry
  std::vector<bool> counts;                  // in any of the seeds
};
// In the order of the cells; of a cell by variant.
std::vector<MeanAblation> MeanAblations(const CellTable& cells,
                                        const std::vector<v1::HeadAblationRow>& rows,
                                        const Variants& variants, AblationMetric metric);

// The row of the view with "drop_counts", "drop_interval", "nll_drop_counts" and
// "nll_drop_interval": [low, high] at 95 %, null where the errors are not known.
render::Json WithIntervals(const v1::HeadAblationRow& row);

}  // namespace pelab::results
