#include <CLI/CLI.hpp>
#include <filesystem>

#include "client/command/ablation_options.h"
#include "client/command/analysis_plan.h"
#include "client/command/commands.h"
#include "client/embedded/analyzer.h"
#include "client/source/connect.h"
#include "client/terminal/analyze_report.h"
#include "client/terminal/show.h"
#include "core/base/status.h"
#include "core/base/strings.h"

namespace pelab::client {
namespace {

struct AnalyzeOptions {
  std::string target;
  std::string sweep;
  AnalysisWords words;
  bool watch = false;
  WorkerOptions worker;
};

absl::StatusOr<int> Ask(const Context& context, const AnalyzeOptions& options) {
  PELAB_ASSIGN_OR_RETURN(auto coordinator, FindCoordinator(context.options));
  PELAB_ASSIGN_OR_RETURN(const AnalysisPlan plan,
                         PlanAnalyses(*coordinator, options.target, options.sweep, options.words));
  PELAB_ASSIGN_OR_RETURN(const v1::AnalyzeResponse answer, AskForAnalyses(*coordinator, plan));
  PutAnswer(context, plan, answer);
  if (!options.watch) return PutAnswerOnly(context, plan, answer);
  PELAB_RETURN_IF_ERROR(
      AwaitAnalyses(context, *coordinator, plan, /*trained_only=*/false, nullptr));
  return ReportAnalyses(context, *coordinator, plan, answer);
}

absl::StatusOr<int> Run(const Context& context, const AnalyzeOptions& options) {
  PELAB_RETURN_IF_ERROR(CheckTargetNames(options.target, options.sweep));
  PELAB_RETURN_IF_ERROR(CheckAnalysisWords(options.words));
  PELAB_ASSIGN_OR_RETURN(const bool served, IsServed(context.options));
  if (served) return Ask(context, options);
  std::error_code ignored;
  if (!std::filesystem::exists(context.options.database, ignored)) {
    return absl::NotFoundError(Concat("no database at ", context.options.database,
                                      ", and no coordinator; name one with --db or --server"));
  }
  PELAB_RETURN_IF_ERROR(CheckDatabaseFile(context.options.database));
  return AnalyzeEmbedded(context, options.target, options.sweep, options.words, options.worker);
}

}  // namespace

void AddAnalyze(Commands& commands) {
  auto options = std::make_shared<AnalyzeOptions>();
  CLI::App* app =
      AddCommand(commands, "analyze", "add analyses to finished jobs, from their kept weights",
                 "  pelab analyze quick --analysis layer_ablation --analysis cumulative_ablation\n"
                 "  pelab analyze quick --analysis head_ablation --set head_ablation.method=mean\n"
                 "  pelab analyze 12 --analysis head_ablation --server gpu01:7470 --watch\n"
                 "Nothing is trained again, and analyses that are stored are not computed again. "
                 "If no coordinator serves --db, this command starts a coordinator and a worker "
                 "until the analyses are stored.");
  AddTarget(app, options->target, options->sweep);
  app->add_option("--analysis", options->words.names,
                  "what `pelab catalog analysis` lists; repeatable")
      ->type_name("NAME")
      ->required()
      ->expected(1)
      ->take_all();
  app->add_option("--set", options->words.set,
                  "a parameter: head_ablation.method=mean; repeatable [default: the protocol's]")
      ->type_name("FIELD=VALUE")
      ->expected(1)
      ->take_all();
  app->add_option("--protocol", options->words.protocol,
                  "the protocol with the defaults of the other parameters [default: each job's]");
  app->add_flag("--watch", options->watch,
                "stay until the analyses are stored (implied if nobody serves --db)");
  AddWorkerFlags(app, options->worker);
  app->callback([&commands, options] {
    commands.chosen = [&commands, options] { return Run(*commands.context, *options); };
  });
}

}  // namespace pelab::client
