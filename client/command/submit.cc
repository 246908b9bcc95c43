#include <CLI/CLI.hpp>

#include "client/command/commands.h"
#include "client/command/dry_run.h"
#include "client/command/notes.h"
#include "client/command/show.h"
#include "client/command/watch.h"
#include "client/connect.h"
#include "core/base/ids.h"
#include "core/base/status.h"
#include "core/results/rows.h"
#include "core/views/text.h"

namespace pelab::client {
namespace {

struct Options {
  std::string file;
  std::vector<std::string> set;
  int priority = 0;
  bool fresh = false;
  bool dry_run = false;
  bool watch = false;
};

render::Json SubmittedJson(const v1::SubmitResponse& r) {
  return {{"sweep_id", r.sweep_id()},
          {"name", r.name()},
          {"cells", r.cells()},
          {"expanded", r.expanded()},
          {"counts", r.expanded() ? results::ToJson(r.counts()) : render::Json(nullptr)}};
}

void PutSubmitted(const Context& context, const v1::SubmitResponse& response, bool watch) {
  if (context.output() == Output::kJson) {
    return context.out(render::ToJson(SubmittedJson(response), /*one_line=*/watch));
  }
  if (context.output() == Output::kCsv) {
    return PutCsv(context, {"sweep_id", "name", "cells", "expanded"},
                  render::Json::array({SubmittedJson(response)}));
  }
  context.out(Concat("sweep ", response.sweep_id(), " ", response.name(), ": ",
                     response.expanded()
                         ? CountsText(response.counts())
                         : Concat(response.cells(), " cells accepted, being expanded"),
                     "\n"));
}

absl::StatusOr<int> Run(Commands& commands, const Options& options) {
  const Context& context = *commands.context;
  commands.document_name = options.file;
  PELAB_ASSIGN_OR_RETURN(const Document document, LoadDocument(options.file, options.set));
  if (options.dry_run) return DryRun(context, document, options.fresh);
  PutNotes(context, document.sweep);
  PELAB_ASSIGN_OR_RETURN(auto coordinator, FindCoordinator(context.options));
  PELAB_ASSIGN_OR_RETURN(const auto response,
                         coordinator->Submit(SubmitRequestOf(document, RandomUuid(),
                                                             options.priority, options.fresh)));
  PutSubmitted(context, response, options.watch);
  if (!options.watch) return kExitOk;
  PELAB_ASSIGN_OR_RETURN(const v1::Sweep sweep,
                         WatchToEnd(context, *coordinator, Concat(response.sweep_id()), nullptr,
                                    context.output() == Output::kJson));
  if (context.output() == Output::kTable) context.out(EndText(sweep) + "\n");
  return ExitCodeOf(sweep);
}

}  // namespace

void AddSubmit(Commands& commands) {
  auto options = std::make_shared<Options>();
  CLI::App* app = AddCommand(commands, "submit", "hand a sweep file to a coordinator",
                             "  pelab submit table1.yaml --server gpu01:7470\n"
                             "  pelab submit quick.yaml --set train.epochs=3 --watch\n"
                             "  pelab submit table1.yaml --dry-run");
  app->add_option("SWEEP.yaml", options->file, "the sweep file")->required();
  app->add_option("--set", options->set,
                  "override a field: model.layers=4; repeatable [default: none]")
      ->type_name("FIELD=VALUE")
      ->expected(1)
      ->take_all();
  app->add_option("--priority", options->priority, "higher first, -1000 to 1000 [default: 0]")
      ->check(CLI::Range(-1000, 1000));
  app->add_flag("--fresh", options->fresh, "train every job again, as a new generation");
  app->add_flag("--dry-run", options->dry_run,
                "check and count; store nothing; needs no coordinator");
  app->add_flag("--watch", options->watch, "stay and show progress until every job has ended");
  app->callback([&commands, options] {
    commands.chosen = [&commands, options] { return Run(commands, *options); };
  });
}

}  // namespace pelab::client
