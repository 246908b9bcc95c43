// Combines deposit indices over seeds. Pure functions: thread-safe.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/render/json.h"
#include "core/results/cells.h"
#include "core/results/variants.h"
#include "core/stats/seeds.h"
#include "pelab/v1/results.pb.h"

namespace pelab::results {

// The seeds of one group, for one variant of the ablation and for one layer or all layers together.
struct DepositGroup {
  const Cell* cell = nullptr;      // in the table from which this was built
  std::optional<Variant> variant;  // nullopt: no seed of the group has a head ablation
  std::optional<int> layer;        // nullopt: all layers together

  stats::SeedSummary seeds;  // n: seeds with stored indices; the value is max_drop or 0
  int undefined = 0;         // how many of those n have no meaningful indices (stored as null)
  // Over the seeds that have the index.
  stats::SeedSummary max_drop;
  stats::SeedSummary top_share;
  stats::SeedSummary top_ratio;
  stats::SeedSummary gini;
  stats::SeedSummary effective_heads;
  // The number of seeds, out of `judged`, that have a deposit: in this layer or, for all layers
  // together, in any layer.
  int deposit_seeds = 0;
  int judged = 0;
  // The layer (for a single layer: the head) with the largest drop in most seeds, the first of
  // equals. It has the largest drop in `top_seeds` out of `placed` seeds.
  std::optional<int> top;
  int top_seeds = 0;
  int placed = 0;
  std::optional<int> top_head;  // only for all layers together with one placed seed: its top head
};

// In the order of the groups; within a group by variant, then all layers together and, with
// `by_layer`, each layer.
std::vector<DepositGroup> DepositGroups(const CellTable& cells,
                                        const std::vector<v1::DepositRow>& rows,
                                        const Variants& variants, bool by_layer);

// The group's columns, "analysis" (version and parameters), "layer", "n", "undefined", "missing",
// "failed", "complete", then for each index {"n", "mean", "sd", "half_width"}, then
// "deposit_seeds", "judged", "top_layer" (for a single layer: "top_head"), "top_seeds", "placed",
// "cancelled", "job_ids".
render::Json ToJson(const CellTable& cells, const DepositGroup& group);
// The same with plain columns for the means: max_drop_mean, max_drop_half_width, …
std::vector<std::string> DepositGroupColumns(const CellTable& cells);
render::Json FlatJson(const CellTable& cells, const DepositGroup& group);

}  // namespace pelab::results
