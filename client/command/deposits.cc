#include <CLI/CLI.hpp>
#include <future>

#include "client/command/ablation_options.h"
#include "client/command/commands.h"
#include "client/command/where_option.h"
#include "client/source/connect.h"
#include "client/terminal/deposit_tables.h"
#include "client/terminal/put.h"
#include "client/terminal/show.h"
#include "client/terminal/unknown_values.h"
#include "core/base/status.h"
#include "core/base/strings.h"
#include "core/results/rows.h"

namespace pelab::client {
namespace {

struct DepositsOptions {
  std::string target;
  std::string sweep;
  std::string where;
  results::AblationChoice choice;
  bool by_layer = false;
  bool seeds = false;
};

absl::StatusOr<int> Run(const Context& context, const DepositsOptions& options) {
  PELAB_RETURN_IF_ERROR(CheckTargetNames(options.target, options.sweep, options.where));
  PELAB_ASSIGN_OR_RETURN(auto source, FindSource(context.options));
  PELAB_ASSIGN_OR_RETURN(const Target target,
                         FindTarget(*source, options.target, options.sweep, options.where));
  const bool layers = options.by_layer || context.output() != Output::kTable;
  const auto read_rows = [&]() -> absl::StatusOr<std::vector<v1::DepositRow>> {
    PELAB_ASSIGN_OR_RETURN(auto rows, source->Deposits(target.filter, /*whole_models=*/!layers));
    PELAB_RETURN_IF_ERROR(ChooseByFlags(options.choice, rows));
    return rows;
  };
  if (context.output() == Output::kCsv && options.seeds) {
    PELAB_ASSIGN_OR_RETURN(const auto rows, read_rows());
    return Put(context, {.columns = results::ColumnsOf<v1::DepositRow>(),
                         .csv = [&] { return results::ToJsonArray(rows); }});
  }
  // Reads all three at once: each takes a while for a large sweep.
  auto rows_to_come = std::async(std::launch::async, read_rows);
  auto analyses_to_come = std::async(
      std::launch::async, [&] { return source->Analyses(target.filter, "head_ablation"); });
  PELAB_ASSIGN_OR_RETURN(const auto jobs, source->Jobs(target.filter));
  PELAB_ASSIGN_OR_RETURN(const auto rows, rows_to_come.get());
  PELAB_ASSIGN_OR_RETURN(const auto analyses, analyses_to_come.get());
  PELAB_RETURN_IF_ERROR(NoteUnknownValues(context, *source, target.filter, jobs.size()));
  PELAB_ASSIGN_OR_RETURN(results::CellTable cells, results::BuildCells(jobs, "test_accuracy", {}));
  if (!target.is_sweep || options.seeds) results::OneSeedEach(cells);
  const auto groups =
      results::DepositGroups(cells, rows, results::VariantsOf(analyses), options.by_layer);
  const auto of_groups = [&](const auto& json_of) {
    render::Json array = render::Json::array();
    for (const results::DepositGroup& group : groups) array.push_back(json_of(cells, group));
    return array;
  };
  const auto json = [&] {
    const auto nested = [](const auto&... group) { return results::ToJson(group...); };
    return render::Json{{"groups", of_groups(nested)},
                        {"deposits", results::ToJsonArray(rows)},
                        {"jobs", results::ToJsonArray(jobs)}};
  };
  const auto text = [&] {
    return rows.empty() ? Concat(target.title,
                                 " has no deposit indices yet: they come with head_ablation, which "
                                 "pelab analyze adds\n")
                        : DepositTableText(cells, groups, context.style);
  };
  return Put(context, {.json = json,
                       .text = text,
                       .rows = "groups",
                       .columns = results::DepositGroupColumns(cells),
                       .csv = [&] { return of_groups(results::FlatJson); }});
}

}  // namespace

void AddDeposits(Commands& commands) {
  auto options = std::make_shared<DepositsOptions>();
  CLI::App* app = AddCommand(
      commands, "deposits", "how much of each layer's drop one head carries: indices over seeds",
      "  pelab deposits quick\n"
      "  pelab deposits quick --by-layer\n"
      "  pelab deposits 12 --by-layer --output json\n"
      "A drop counts where it exceeds 3 paired standard errors. max drop: the largest; top share: "
      "its part of "
      "all drops; gini: 0 alike, near 1 one head; eff. heads: 1 / the sum of squared shares; "
      "deposit: a drop of "
      "at least 40 points, or half of what is above chance, 3 times the next in its layer.");
  AddTarget(app, options->target, options->sweep);
  AddWhere(app, options->where);
  AddChoice(app, options->choice);
  app->add_flag("--by-layer", options->by_layer, "each layer too, below all layers together");
  app->add_flag("--seeds", options->seeds, "one line per job instead of a group");
  app->callback([&commands, options] {
    commands.chosen = [&commands, options] { return Run(*commands.context, *options); };
  });
}

}  // namespace pelab::client
