#include "core/claims/entries.h"

#include "core/claims/metric.h"

namespace pelab::claims {
namespace {

constexpr char kSheetRule[] = "docs/formats.md, Claim sheets";
constexpr char kDepositRule[] = "docs/formats.md, Deposit indices";

}  // namespace

const std::vector<catalog::Entry>& KindEntries() {
  static const auto& entries = *new std::vector<catalog::Entry>{
      {.name = "above",
       .version = 0,
       .help =
           "every cell a lies above every cell b by more than `by`; of a chain, each cell above "
           "the next; keys: metric, a and b (a cell or a list), or chain (a list), by [0]",
       .source = kSheetRule},
      {.name = "between",
       .version = 0,
       .help = "the cell lies between `low` and `high`; keys: metric, cell, low, high",
       .source = kSheetRule},
      {.name = "near",
       .version = 0,
       .help = "a less b lies between -`within` and `within`; keys: metric, a, b, within",
       .source = kSheetRule},
      {.name = "most",
       .version = 0,
       .help = "the cell has the property; keys: metric (deposit, no_deposit or top_deeper), cell, "
               "layers (any, shallow, or a list)",
       .source = kSheetRule},
      {.name = "contrast",
       .version = 0,
       .help =
           "the sum of the cells, each times its weight, lies above `by`; keys: metric, of (a list "
           "of maps with cell and weight), by [0]",
       .source = kSheetRule},
  };
  return entries;
}

const std::vector<catalog::Entry>& MetricEntries() {
  static const auto& entries = *new std::vector<catalog::Entry>{
      {.name = "test_accuracy", .version = 0, .help = "after the last epoch"},
      {.name = "best_test_accuracy", .version = 0, .help = "the best test accuracy of any epoch"},
      {.name = "train_accuracy",
       .version = 0,
       .help = "the running mean over the last epoch, in training mode"},
      {.name = "train_eval_accuracy",
       .version = 0,
       .help = "of a sample of the training examples after the last epoch, without dropout"},
      {.name = "generalisation_gap",
       .version = 0,
       .help = "train_eval_accuracy less test_accuracy"},
      {.name = "wall_seconds", .version = 0, .help = "of the job"},
      {.name = "epochs_to(x)",
       .version = 0,
       .help = "the first epoch, from 0, in which the test accuracy was x or more"},
      {.name = "split_accuracy(name)",
       .version = 0,
       .help = "on a split of the data, from the analysis split_accuracy",
       .source = "docs/own-data.md"},
      {.name = "layer_drop(layer)",
       .version = 0,
       .help = "the drop of the accuracy without the heads of this layer, from layer_ablation"},
      {.name = "greedy_accuracy(heads)",
       .version = 0,
       .help = "without that many heads, each the one that is missed least, from "
               "cumulative_ablation"},
      {.name = "max_drop",
       .version = 0,
       .help = "the largest drop of the accuracy without one head",
       .source = kDepositRule},
      {.name = "top_share",
       .version = 0,
       .help = "the largest drop's share of all drops",
       .source = kDepositRule},
      {.name = "top_ratio",
       .version = 0,
       .help = "the largest drop divided by the second largest",
       .source = kDepositRule},
      {.name = "gini",
       .version = 0,
       .help = "how unequal the drops are: 0 alike, 1 all in one head",
       .source = kDepositRule},
      {.name = "effective_heads",
       .version = 0,
       .help = "how many equal heads would share the drops as unequally",
       .source = kDepositRule},
      {.name = "deposits",
       .version = 0,
       .help = "in how many layers one head holds the work",
       .source = kDepositRule},
      {.name = kDeposit,
       .version = 0,
       .help =
           "property: one head holds a layer's work, in any layer, a shallow one, or all listed "
           "ones",
       .source = kDepositRule},
      {.name = kNoDeposit, .version = 0, .help = "property: not so", .source = kDepositRule},
      {.name = kStartsDeeper,
       .version = 0,
       .help = "property: the largest drop is not in the first layer",
       .source = kDepositRule},
  };
  return entries;
}

}  // namespace pelab::claims
