#include <CLI/CLI.hpp>
#include <algorithm>
#include <future>
#include <utility>
#include <vector>

#include "client/command/ablation_options.h"
#include "client/command/commands.h"
#include "client/command/metric_values.h"
#include "client/command/where_option.h"
#include "client/figure/paper.h"
#include "client/limits.h"
#include "client/options/filter.h"
#include "client/options/outputs.h"
#include "client/source/connect.h"
#include "client/terminal/comparison_table.h"
#include "client/terminal/put.h"
#include "client/terminal/result_tables.h"
#include "client/terminal/show.h"
#include "client/terminal/table.h"
#include "client/terminal/unknown_values.h"
#include "client/terminal/varying_columns.h"
#include "core/base/status.h"
#include "core/base/strings.h"
#include "core/db/read/where.h"
#include "core/render/text.h"
#include "core/results/fields.h"
#include "core/results/rows.h"
#include "core/results/shortcuts.h"
#include "core/results/top.h"

namespace pelab::client {
namespace {

using Align = render::Column::Align;

struct ResultsOptions {
  const CLI::App* app = nullptr;  // knows which flags were given
  std::string sweep;
  std::string where;
  std::string group_by;
  std::string metric = "test_accuracy";
  std::string interval = "t";
  std::string compare;
  std::string with;
  int top = 0;  // 0: all
  bool seeds = false;
  results::AblationChoice choice;
  PaperOptions paper;
};

std::string SeedTable(const results::JobList& jobs, const render::Style& style) {
  const VaryingColumns varying(jobs);
  std::vector<render::Column> columns = {
      {"job", Align::kRight}, render::LabelColumn("pe"), render::LabelColumn("task")};
  varying.AddTo(columns);
  columns.insert(columns.end(), {{"seed", Align::kRight},
                                 {"state"},
                                 {"epochs", Align::kRight},
                                 {"test_accuracy", Align::kRight},
                                 {"correct", Align::kRight},
                                 {"train", Align::kRight}});
  render::Table table(columns);
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    const v1::JobRow& job = jobs.rows()[i];
    const bool done = job.state() == v1::JOB_STATE_SUCCEEDED || job.trained();
    const auto accuracy = [&](bool has, double value) {
      return has ? (done ? "" : "~") + render::Fixed(value, 4) : std::string("-");
    };
    std::vector<std::string> cells = {Concat(job.job_id()), job.pe_label(), job.task()};
    varying.AddCells(i, cells);
    cells.insert(cells.end(),
                 {Concat(job.seed()), StateText(job), Concat(job.epochs_done(), "/", job.epochs()),
                  accuracy(job.has_test_accuracy(), job.test_accuracy()),
                  job.has_test_total() ? Concat(job.test_correct(), "/", job.test_total()) : "-",
                  accuracy(job.has_train_accuracy(), job.train_accuracy())});
    table.AddRow(std::move(cells), done && !job.diverged() ? "" : "33");
  }
  return table.Render(style);
}

stats::IntervalKind IntervalOf(const ResultsOptions& options) {
  return options.interval == "bootstrap" ? stats::IntervalKind::kBootstrap
                                         : stats::IntervalKind::kStudentT;
}

std::string TopText(const results::CellTable& table, const results::LeftOut& left_out) {
  const std::size_t kept = table.cells.size();
  std::string text =
      Concat("the ", kept, " best of ", kept + left_out.cells, " by mean ", table.metric.name, ", ",
             results::IsBetterWhenLow(table.metric) ? "lowest" : "highest", " first; ",
             left_out.cells, " left out");
  if (left_out.without_mean > 0) {
    text += Concat(", of them ", left_out.without_mean, " without a mean");
  }
  return text + "\n";
}

// Writes the results in the requested output. "jobs" are the stored rows, "groups" are computed
// from them. `left_out` has one entry per table, or is empty.
void PutGroups(const Context& context, const ResultsOptions& options,
               const std::vector<results::CellTable>& tables,
               const std::vector<results::LeftOut>& left_out, const results::JobList& jobs) {
  render::Json groups = render::Json::array();
  render::Json metrics = render::Json::array();
  bool complete = true;
  for (const results::CellTable& table : tables) {
    metrics.push_back(table.metric.name);
    complete = complete && table.complete();
    for (const results::Cell& cell : table.cells) groups.push_back(results::ToJson(table, cell));
  }
  const auto json = [&] {
    render::Json value = {
        {"sweep", options.sweep.empty() ? render::Json(nullptr) : render::Json(options.sweep)},
        {"metric", tables.front().metric.name},
        {"metrics", metrics},
        {"complete", complete},
        {"groups", groups},
        {"jobs", results::ToJsonArray(jobs)}};
    for (const results::LeftOut& of_table : left_out) {
      value["groups_left_out"].push_back(of_table.cells);
    }
    return value;
  };
  const auto text = [&]() -> std::string {
    if (jobs.empty()) return "no jobs\n";
    if (options.seeds) return SeedTable(jobs, context.style);
    std::string text;
    for (std::size_t t = 0; t < tables.size(); ++t) {
      text += Concat(t == 0 ? "" : "\n", CellTableText(tables[t], context.style));
      if (!left_out.empty() && left_out[t].cells > 0) text += TopText(tables[t], left_out[t]);
    }
    return text;
  };
  Put(context, {.json = json,
                .text = text,
                .rows = "groups",
                .columns = results::CellColumns(tables.front()),
                .csv = [&] { return groups; }});
}

void NoteExpansion(const Context& context, DataSource& source, const std::string& name) {
  if (name.empty() || context.output() != Output::kTable) return;
  const auto sweep = source.Sweep(name);
  if (sweep.ok() && sweep->state() == v1::SWEEP_STATE_EXPANDING) {
    context.err("note: the sweep is still being expanded; more jobs will come\n");
  }
}

v1::JobFilter FilterOf(const ResultsOptions& options, const std::string& more = "") {
  v1::JobFilter filter;
  filter.set_sweep(options.sweep);
  filter.set_where(options.where.empty() || more.empty()
                       ? options.where + more
                       : Concat("(", options.where, ") and (", more, ")"));
  return filter;
}

absl::StatusOr<int> Groups(const Context& context, const ResultsOptions& options,
                           const std::vector<results::Metric>& metrics) {
  results::CellOptions cells{.interval = IntervalOf(options)};
  if (!options.group_by.empty()) {
    PELAB_ASSIGN_OR_RETURN(cells.group_by, ParseNames(options.group_by, "--group-by"));
    PELAB_RETURN_IF_ERROR(Annotate(results::CheckFieldNames(cells.group_by), "--group-by"));
  }
  PELAB_ASSIGN_OR_RETURN(const auto source, FindSource(context.options));
  const v1::JobFilter filter = FilterOf(options);
  const bool one_value = context.output() == Output::kJson && !context.options.json_lines();
  if (options.seeds && context.output() != Output::kTable && !one_value) {
    return PutJobs(context, *source, filter);
  }
  ValuesToCome values_to_come = LoadTogether(*source, filter, metrics, options.choice);
  PELAB_ASSIGN_OR_RETURN(const auto jobs, source->Jobs(filter));
  PELAB_RETURN_IF_ERROR(NoteUnknownValues(context, *source, filter, jobs.size()));
  const bool for_people =
      context.output() == Output::kTable && !PaperOf(context.options.output_name);
  // The attempts of a large sweep are read while the cells are computed.
  std::future<absl::StatusOr<std::string>> computed_by;
  if (for_people) {
    computed_by = std::async(std::launch::async,
                             [&] { return ComputedByLine(context, *source, filter, jobs); });
  }
  std::vector<results::CellTable> tables;
  for (std::size_t m = 0; m < metrics.size(); ++m) {
    PELAB_ASSIGN_OR_RETURN(const auto values, values_to_come[m].get());
    cells.metric = metrics[m];
    cells.values = values ? &*values : nullptr;
    PELAB_ASSIGN_OR_RETURN(auto table, results::BuildCells(jobs, cells));
    tables.push_back(std::move(table));
  }
  std::vector<results::LeftOut> left_out;
  if (options.top > 0) {
    for (results::CellTable& table : tables) {
      left_out.push_back(results::KeepTop(table, static_cast<std::size_t>(options.top)));
    }
  }
  if (const auto paper = PaperOf(context.options.output_name)) {
    std::vector<PaperTable> of_paper;
    of_paper.reserve(tables.size());
    for (const results::CellTable& table : tables) of_paper.push_back(ResultsTable(table));
    PELAB_RETURN_IF_ERROR(PutPaper(context, options.paper, TablesText(of_paper, *paper)));
    for (std::size_t t = 0; t < left_out.size(); ++t) {
      if (left_out[t].cells > 0) context.err(Concat("note: ", TopText(tables[t], left_out[t])));
    }
  } else {
    PutGroups(context, options, tables, left_out, jobs);
  }
  if (for_people) {
    PELAB_ASSIGN_OR_RETURN(const std::string line, computed_by.get());
    context.out(line);
    const bool accuracy = std::any_of(metrics.begin(), metrics.end(), [](const auto& metric) {
      return metric.name.ends_with("_accuracy");
    });
    const std::string shortcuts = accuracy ? results::ShortcutsText(jobs) : "";
    if (!shortcuts.empty()) context.out(render::Wrap(shortcuts, context.style.width) + "\n");
  }
  NoteExpansion(context, *source, options.sweep);
  return kExitOk;
}

// Reads which examples the jobs got right. Asks for these jobs only if they are few: each result
// has some kilobytes.
absl::StatusOr<std::vector<v1::AnalysisRow>> JudgedExamples(DataSource& source,
                                                            const results::JobList& a,
                                                            const results::JobList& b) {
  if (a.empty() || b.empty()) return std::vector<v1::AnalysisRow>();
  v1::JobFilter filter;
  if (a.size() + b.size() <= limits::kComparedByJob) {
    for (const results::JobList* side : {&a, &b}) {
      for (const v1::JobRow& job : *side) filter.add_jobs(Concat(job.job_id()));
    }
  }
  return source.Analyses(filter, "example_correctness");
}

absl::StatusOr<int> Compare(const Context& context, const ResultsOptions& options,
                            const std::vector<results::Metric>& metrics) {
  PELAB_ASSIGN_OR_RETURN(auto compared, db::FieldsOfWhere(options.compare));
  PELAB_ASSIGN_OR_RETURN(const auto others, db::FieldsOfWhere(options.with));
  compared.insert(compared.end(), others.begin(), others.end());
  PELAB_ASSIGN_OR_RETURN(const auto source, FindSource(context.options));
  ValuesToCome values_to_come = LoadTogether(*source, FilterOf(options), metrics, options.choice);
  auto b_to_come =
      std::async(std::launch::async, [&] { return source->Jobs(FilterOf(options, options.with)); });
  PELAB_ASSIGN_OR_RETURN(const auto a, source->Jobs(FilterOf(options, options.compare)));
  PELAB_ASSIGN_OR_RETURN(const auto b, b_to_come.get());
  PELAB_RETURN_IF_ERROR(NoteUnknownValues(context, *source, FilterOf(options, options.compare),
                                          a.size(), "--compare"));
  PELAB_RETURN_IF_ERROR(
      NoteUnknownValues(context, *source, FilterOf(options, options.with), b.size(), "--with"));
  PELAB_ASSIGN_OR_RETURN(const auto examples, JudgedExamples(*source, a, b));
  render::Json groups = render::Json::array();
  std::vector<std::string> columns;
  std::string text;
  std::vector<PaperTable> of_paper;
  render::Json confounders = render::Json::array();
  for (std::size_t m = 0; m < metrics.size(); ++m) {
    PELAB_ASSIGN_OR_RETURN(const auto values, values_to_come[m].get());
    PELAB_ASSIGN_OR_RETURN(auto comparison,
                           results::Compare(a, b, compared, metrics[m], values ? &*values : nullptr,
                                            IntervalOf(options)));
    results::CompareExamples(examples, comparison);
    for (const results::PairGroup& group : comparison.groups) {
      groups.push_back(results::ToJson(comparison, group));
    }
    columns = results::ComparisonColumns(comparison);
    confounders = comparison.confounders;
    of_paper.push_back(ComparisonTable(comparison, options.compare, options.with));
    text += Concat(text.empty() ? "" : "\n",
                   ComparisonText(comparison, options.compare, options.with, context.style));
  }
  if (const auto paper = PaperOf(context.options.output_name)) {
    PELAB_RETURN_IF_ERROR(PutPaper(context, options.paper, TablesText(of_paper, *paper)));
    return kExitOk;
  }
  const auto json = [&] {
    return render::Json{{"compare", options.compare},
                        {"with", options.with},
                        {"also_different", confounders},
                        {"groups", groups}};
  };
  return Put(context,
             {.json = json, .text = [&] { return text; }, .rows = "groups", .columns = columns});
}

// Refuses flags that the requested output would ignore.
absl::Status CheckTogether(const ResultsOptions& options) {
  const auto given = [&](const char* flag) { return options.app->count(flag) > 0; };
  const auto refused = [](const std::string& flag, const char* about, const std::string& other) {
    return absl::InvalidArgumentError(Concat(flag, " is about ", about, ": leave out ", other));
  };
  if (options.seeds && given("--compare")) return refused("--seeds", "single jobs", "--compare");
  for (const char* flag : {"--top", "--group-by"}) {
    if (given("--compare") && given(flag)) return refused(flag, "groups", "--compare");
  }
  if (!options.seeds) return absl::OkStatus();
  for (const char* flag : {"--top", "--group-by", "--interval"}) {
    if (given(flag)) return refused(flag, "groups", "--seeds");
  }
  if (!given("--metric")) return absl::OkStatus();
  return refused("--metric", "groups",
                 "--seeds; with --group-by pe,task,seed each seed is a group");
}

absl::StatusOr<int> Run(const Context& context, const ResultsOptions& options) {
  PELAB_RETURN_IF_ERROR(CheckTogether(options));
  PELAB_ASSIGN_OR_RETURN(const auto metrics, ParseMetrics(options.metric));
  PELAB_RETURN_IF_ERROR(CheckChoice(options.choice, metrics));
  PELAB_RETURN_IF_ERROR(CheckPaper(context, options.paper));
  if (options.seeds && PaperOf(context.options.output_name)) {
    return absl::InvalidArgumentError(
        Concat("--seeds is for --output table, json, jsonl and csv; --output ",
               context.options.output_name, " gives the groups"));
  }
  if (options.compare.empty() != options.with.empty()) {
    return absl::InvalidArgumentError(
        "--compare and --with go together: --compare pe=rope --with pe=mla");
  }
  return options.compare.empty() ? Groups(context, options, metrics)
                                 : Compare(context, options, metrics);
}

}  // namespace

void AddResults(Commands& commands) {
  auto options = std::make_shared<ResultsOptions>();
  CLI::App* app =
      AddCommand(commands, "results", "accuracies with seeds collapsed: mean, 95 % interval, n",
                 "  pelab results quick\n"
                 "  pelab results --where 'pe=rope,task=distance' --seeds\n"
                 "  pelab results table1 --group-by pe,task --output json\n"
                 "  pelab results --where 'pe in (rope, mla) and not train.lr < 1e-4'\n"
                 "  pelab results table1 --metric 'best_test_accuracy,epochs_to(0.9),gini'\n"
                 "  pelab results table1 --metric 'epochs_to(0.9)' --top 5\n"
                 "  pelab results table1 --compare pe=rope --with pe=mla\n"
                 "  pelab results table1 --output latex --out table1.tex");
  options->app = app;
  app->add_option("SWEEP", options->sweep,
                  "number or name of a sweep [default: all jobs of the database]");
  AddWhere(app, options->where);
  app->add_option("--group-by", options->group_by,
                  "what makes a group: pe,task,model.layers [default: everything but the seed]");
  app->add_option(
      "--metric", options->metric,
      Concat("one or more of ", Join(results::Metrics(), ", "), " [default: test_accuracy]"));
  app->add_option("--interval", options->interval,
                  "the 95 % interval of the mean: t (Student's) or bootstrap (percentile) "
                  "[default: t]")
      ->check(CLI::IsMember({"t", "bootstrap"}));
  AddCondition(app, "--compare", options->compare,
               "compare the jobs of this condition with those of --with, paired by seed and "
               "everything else equal");
  AddCondition(app, "--with", options->with, "the other side of --compare");
  AddChoice(app, options->choice);
  app->add_option("--top", options->top,
                  "only this many groups: those with the best means of the metric, best first "
                  "(lowest of losses, gaps, epochs and seconds) [default: all]")
      ->type_name("N")
      ->check(CLI::Range(1, 1000000));
  app->add_flag("--seeds", options->seeds, "one line per job instead of a group");
  AddPaperOptions(app, options->paper);
  app->callback([&commands, options] {
    commands.chosen = [&commands, options] { return Run(*commands.context, *options); };
  });
}

}  // namespace pelab::client
