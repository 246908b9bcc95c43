// Head ablations judged, and put together over seeds. Pure functions: thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
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
  double value = 0;                      // as it is stored
  std::optional<double> standard_error;  // of the paired change; not in ablations of version 1
  // More than 3 standard errors above 0, or nothing is known of them: what deposit indices count.
  bool counts = true;

  // Within 3 standard errors of 0. What is below them counts for no index, but is no chance either.
  bool may_be_chance() const;
  // Value ± 1.96 standard errors.
  std::optional<double> half_width() const;
};
EntryDrop Judge(double value, const std::optional<double>& standard_error);

// nullopt where the matrix has no such entry, or where the measure means nothing (a normalised drop
// of a model that does not stand out from chance).
std::optional<EntryDrop> DropOf(const v1::HeadAblationRow& row, AblationMetric metric);

// One seed's matrix, row-major by layer and head.
struct SeedDrops {
  std::int64_t job_id = 0;
  std::int64_t seed = 0;
  std::vector<std::optional<EntryDrop>> drops;  // nullopt where there is no such entry
  const v1::HeadAblationRow* row = nullptr;     // one of its rows, of those that it was built from
};

// Means over seeds of what is stored, row-major.
struct MeanDrops {
  std::vector<std::optional<double>> drops;  // nullopt where no seed has such an entry
  std::vector<int> n;                        // seeds that have it
  std::vector<int> counts;                   // in how many of them it counts
  std::vector<int> significant;              // in how many it cannot well be chance
};

// Which head has the largest drop of a layer, of those that count.
struct LayerLead {
  int layer = 0;
  int head = 0;   // that leads in most seeds, the first of equals
  int seeds = 0;  // in which it leads
  int of = 0;     // in which any drop of the layer counts; 0: none leads
};

// How seeds are put together: heads of one number with each other, or of one rank, the largest drop of
// each layer with the largest of the other seeds.
enum class HeadOrder {
  kByEncoding,  // by rank, unless there is one seed or catalog::HeadsDiffer
  kIndex,
  kRank,
};

// The seeds of one cell and variant of the ablation.
struct MeanAblation {
  const Cell* cell = nullptr;  // of the table that it was built from
  Variant variant;
  int layers = 0;
  int heads = 0;
  std::vector<SeedDrops> seeds;  // that have one, by job number
  MeanDrops by_index;
  MeanDrops by_rank;             // in place of heads ranks, from 0
  std::vector<LayerLead> leads;  // of each layer

  bool ByRank(HeadOrder order) const;
  const MeanDrops& Of(HeadOrder order) const { return ByRank(order) ? by_rank : by_index; }
};
// In the order of the cells; of a cell by variant.
std::vector<MeanAblation> MeanAblations(const CellTable& cells,
                                        const std::vector<v1::HeadAblationRow>& rows,
                                        const Variants& variants, AblationMetric metric);

// "layer 0: head 2 leads in 2 of 3 seeds"
std::string LeadText(const LayerLead& lead);

// {"job_ids", "variant", "layers", "heads", "heads_differ", "by_index", "by_rank", "leads"}: the
// means as {"drops", "n", "counts"}, [layer][head] or [layer][rank].
render::Json ToJson(const MeanAblation& mean);

// The row of the view with "drop_counts", "drop_interval", "nll_drop_counts" and
// "nll_drop_interval": [low, high] at 95 %, null where the errors are not known.
render::Json WithIntervals(const v1::HeadAblationRow& row);

}  // namespace pelab::results
