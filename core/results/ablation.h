// Judges head ablations and combines them over seeds. Pure functions: thread-safe.
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
  kNllDrop,         // the increase of the mean loss under ablation, in nats
  kNormalizedDrop,  // the accuracy drop divided by the intact accuracy above chance
};
// Parses "accuracy_drop", "nll_drop" or "normalised_drop"; otherwise INVALID_ARGUMENT.
absl::StatusOr<AblationMetric> ParseAblationMetric(const std::string& name);

// The measured drop of one head, and whether it is more than noise.
struct EntryDrop {
  double value = 0;                      // as it is stored
  std::optional<double> standard_error;  // for the paired change; absent in ablations of version 1
  // True if the drop is more than 3 standard errors above 0, or if the standard error is unknown.
  // Deposit indices use only drops that count.
  bool counts = true;

  // Whether the drop lies within 3 standard errors of 0. A drop below that range does not count for
  // any index, but is not chance either.
  bool may_be_chance() const;
  // Half the 95 % interval: 1.96 standard errors.
  std::optional<double> half_width() const;
};
EntryDrop Judge(double value, const std::optional<double>& standard_error);

// nullopt if the matrix has no such entry, or if the measure has no meaning (a normalized drop of a
// model whose intact accuracy does not stand out from chance).
std::optional<EntryDrop> DropOf(const v1::HeadAblationRow& row, AblationMetric metric);

// The matrix of one seed, row-major by layer and head.
struct SeedDrops {
  std::int64_t job_id = 0;
  std::int64_t seed = 0;
  std::vector<std::optional<EntryDrop>> drops;  // nullopt if there is no such entry
  const v1::HeadAblationRow* row = nullptr;     // one of the rows from which this was built
};

// Means of the stored values over seeds, row-major.
struct MeanDrops {
  std::vector<std::optional<double>> drops;  // nullopt if no seed has the entry
  std::vector<int> n;                        // number of seeds that have the entry
  std::vector<int> counts;                   // number of seeds whose drop counts
  std::vector<int> significant;              // number of seeds whose drop is unlikely to be chance
};

// The head that has the largest drop of its layer in most seeds, among drops that count.
struct LayerLead {
  int layer = 0;
  int head = 0;   // leads in most seeds; the first of equals
  int seeds = 0;  // number of seeds in which it leads
  int of = 0;     // seeds in which any drop of the layer counts; 0: no head leads
};

// How heads of different seeds are matched: by number, or by rank. By rank, the largest drop of a
// layer in one seed is combined with the largest drop of this layer in every other seed, then the
// second largest, and so on.
enum class HeadOrder {
  kByEncoding,  // by rank, except for a single seed or if catalog::HeadsDiffer
  kIndex,
  kRank,
};

// The seeds of one group and one variant of the ablation.
struct MeanAblation {
  const Cell* cell = nullptr;  // in the table from which this was built
  Variant variant;
  int layers = 0;
  int heads = 0;
  std::vector<SeedDrops> seeds;  // seeds that have the ablation, by job number
  MeanDrops by_index;
  MeanDrops by_rank;             // indexed by rank, from 0, and not by head
  std::vector<LayerLead> leads;  // one per layer

  bool ByRank(HeadOrder order) const;
  const MeanDrops& Of(HeadOrder order) const { return ByRank(order) ? by_rank : by_index; }
};
// In the order of the groups, and within a group by variant.
std::vector<MeanAblation> MeanAblations(const CellTable& cells,
                                        const std::vector<v1::HeadAblationRow>& rows,
                                        const Variants& variants, AblationMetric metric);

// "layer 0: head 2 leads in 2 of 3 seeds"
std::string LeadText(const LayerLead& lead);

// {"job_ids", "variant", "layers", "heads", "heads_differ", "by_index", "by_rank", "leads"}. The
// means are {"drops", "n", "counts", "significant"}, each as [layer][head] or [layer][rank].
render::Json ToJson(const MeanAblation& mean);

// The view's row, plus "drop_counts", "drop_interval", "nll_drop_counts" and "nll_drop_interval".
// Intervals are [low, high] at 95 %; all four are null if the errors are unknown.
render::Json WithIntervals(const v1::HeadAblationRow& row);

}  // namespace pelab::results
