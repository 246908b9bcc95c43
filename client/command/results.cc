#include <CLI/CLI.hpp>

#include "client/command/commands.h"
#include "client/command/show.h"
#include "client/connect.h"
#include "client/filter.h"
#include "client/render/table.h"
#include "client/report/pictures.h"
#include "core/render/text.h"
#include "core/results/rows.h"
#include "core/views/text.h"

namespace pelab::client {
namespace {

using Align = render::Column::Align;

struct Options {
  std::string sweep;
  std::string where;
  std::string group_by;
  std::string metric = "test_accuracy";
  bool seeds = false;
};

std::string SeedTable(const results::JobList& jobs, const render::Style& style) {
  render::Table table({{"job", Align::kRight},
                       {"pe", Align::kLeft, true},
                       {"task", Align::kLeft, true},
                       {"seed", Align::kRight},
                       {"state"},
                       {"epochs", Align::kRight},
                       {"test_accuracy", Align::kRight},
                       {"correct", Align::kRight},
                       {"train_accuracy", Align::kRight}});
  for (const v1::JobRow& job : jobs) {
    const bool done = job.state() == v1::JOB_STATE_SUCCEEDED || job.trained();
    const auto accuracy = [&](bool has, double value) {
      return has ? (done ? "" : "~") + render::Fixed(value, 4) : std::string("-");
    };
    table.AddRow({Concat(job.job_id()), job.pe_label(), job.task(), Concat(job.seed()),
                  StateText(job), Concat(job.epochs_done(), "/", job.epochs()),
                  accuracy(job.has_test_accuracy(), job.test_accuracy()),
                  job.has_test_total() ? Concat(job.test_correct(), "/", job.test_total()) : "-",
                  accuracy(job.has_train_accuracy(), job.train_accuracy())},
                 done ? "" : "33");
  }
  return table.Render(style);
}

// JobRow's JSON is what is stored; the cells are worked out from it.
void Put(const Context& context, const Options& options, const results::CellTable& table,
         const results::JobList& jobs) {
  render::Json groups = render::Json::array();
  for (const results::Cell& cell : table.cells) groups.push_back(results::ToJson(table, cell));
  switch (context.output()) {
    case Output::kJson:
      return PutJson(context, {{"sweep", options.sweep.empty() ? render::Json(nullptr)
                                                               : render::Json(options.sweep)},
                               {"metric", table.metric},
                               {"complete", table.complete()},
                               {"groups", groups},
                               {"jobs", results::ToJsonArray(jobs)}});
    case Output::kCsv:
      return options.seeds ? PutCsv(context, results::kJobColumns, results::ToJsonArray(jobs))
                           : PutCsv(context, results::CellColumns(table), groups);
    case Output::kTable:
      if (jobs.empty()) return context.out("no jobs\n");
      return context.out(options.seeds ? SeedTable(jobs, context.style)
                                       : CellTableText(table, context.style));
  }
}

absl::StatusOr<int> Run(const Context& context, const Options& options) {
  auto where = ParseWhere(options.where);
  if (!where.ok()) return where.status();
  std::vector<std::string> group_by;
  if (!options.group_by.empty()) {
    auto names = ParseNames(options.group_by, "--group-by");
    if (!names.ok()) return names.status();
    group_by = *std::move(names);
  }
  auto source = FindSource(context.options);
  if (!source.ok()) return source.status();
  v1::JobFilter filter;
  filter.set_sweep(options.sweep);
  for (const v1::Condition& condition : *where) *filter.add_where() = condition;
  auto jobs = (*source)->Jobs(filter);
  if (!jobs.ok()) return jobs.status();
  auto table = results::BuildCells(*jobs, options.metric, group_by);
  if (!table.ok()) return table.status();
  Put(context, options, *table, *jobs);
  if (!options.sweep.empty() && context.output() == Output::kTable) {
    auto sweep = (*source)->Sweep(options.sweep);
    if (sweep.ok() && sweep->state() == v1::SWEEP_STATE_EXPANDING) {
      context.err("note: the sweep is still being expanded; more jobs will come\n");
    }
  }
  return kExitOk;
}

}  // namespace

void AddResults(Commands& commands) {
  auto options = std::make_shared<Options>();
  CLI::App* app =
      AddCommand(commands, "results", "accuracies with seeds collapsed: mean, 95 % interval, n",
                 "  pelab results quick\n"
                 "  pelab results --where 'pe=rope,task=distance' --seeds\n"
                 "  pelab results table1 --group-by pe,task --output json");
  app->add_option("SWEEP", options->sweep,
                  "number or name of a sweep [default: all jobs of the database]");
  app->add_option("--where", options->where,
                  "conditions on columns of v_jobs and fields of the spec: pe=rope,train.lr>=1e-4 "
                  "[default: none]");
  app->add_option("--group-by", options->group_by,
                  "what makes a group: pe,task,model.layers [default: everything but the seed]");
  app->add_option(
      "--metric", options->metric,
      "test_accuracy, best_test_accuracy, train_accuracy or wall_seconds [default: test_accuracy]");
  app->add_flag("--seeds", options->seeds, "one line a job instead of a group");
  app->callback([&commands, options] {
    commands.chosen = [&commands, options] { return Run(*commands.context, *options); };
  });
}

}  // namespace pelab::client
