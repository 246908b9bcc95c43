// Deposit indices put together over seeds. Pure functions: thread-safe.
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

// The seeds of one cell, of one variant of the ablation, of one layer or of all layers together.
struct DepositGroup {
  const Cell* cell = nullptr;      // of the table that it was built from
  std::optional<Variant> variant;  // nullopt: no seed of the cell has a head ablation
  std::optional<int> layer;        // nullopt: all layers together

  stats::SeedSummary seeds;  // n: how many have the indices stored; the value is max_drop or 0
  int undefined = 0;         // of those, where the indices mean nothing (and are null)
  // Over the seeds whose index is there.
  stats::SeedSummary max_drop;
  stats::SeedSummary top_share;
  stats::SeedSummary top_ratio;
  stats::SeedSummary gini;
  stats::SeedSummary effective_heads;
  // In how many of `judged` seeds there is a deposit: in this layer, or in any.
  int deposit_seeds = 0;
  int judged = 0;
  // The layer (of one layer: the head) that has the largest drop in most seeds, the first of
  // equals, and in how many of `placed` seeds it does.
  std::optional<int> top;
  int top_seeds = 0;
  int placed = 0;
  std::optional<int> top_head;  // of all layers together, where one seed is placed: the head there
};

// In the order of the cells; of a cell by variant, then all layers together and, with `by_layer`,
// each layer.
std::vector<DepositGroup> DepositGroups(const CellTable& cells,
                                        const std::vector<v1::DepositRow>& rows,
                                        const Variants& variants, bool by_layer);

// The cell's columns, "analysis" (version and parameters), "layer", n, undefined, missing, failed,
// complete, then for each index {"n", "mean", "sd", "half_width"}, then "deposit_seeds", "judged",
// "top_layer" (of one layer: "top_head"), "top_seeds", "placed", "job_ids".
render::Json ToJson(const CellTable& cells, const DepositGroup& group);
// The same in plain columns: max_drop_mean, max_drop_half_width, …
std::vector<std::string> DepositGroupColumns(const CellTable& cells);
render::Json FlatJson(const CellTable& cells, const DepositGroup& group);

}  // namespace pelab::results
