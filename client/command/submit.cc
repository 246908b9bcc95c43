#include <CLI/CLI.hpp>

#include "client/command/commands.h"
#include "client/command/dry_run.h"
#include "client/command/notes.h"
#include "client/source/connect.h"
#include "client/terminal/put.h"
#include "client/terminal/show.h"
#include "client/terminal/watch.h"
#include "core/base/ids.h"
#include "core/base/status.h"
#include "core/base/strings.h"
#include "core/render/text.h"
#include "core/results/rows.h"

namespace pelab::client {
namespace {

struct SubmitCommandOptions {
  DocumentOptions document;
  SubmitOptions submit;
  bool dry_run = false;
  bool watch = false;
};

render::Json SubmittedJson(const v1::SubmitResponse& r) {
  return {{"sweep_id", r.sweep_id()},
          {"name", r.name()},
          {"cells", r.cells()},
          {"expanded", r.expanded()},
          {"counts", r.expanded() ? results::ToJson(r.counts()) : render::Json(nullptr)},
          {"went_on", r.went_on()},
          {"reopened", r.reopened()}};
}

std::string Text(const v1::SubmitResponse& response) {
  return Concat("sweep ", response.sweep_id(), " ", render::Escape(response.name()), ": ",
                response.expanded() ? CountsText(response.counts())
                                    : Concat(response.cells(), " cells accepted, being expanded"),
                "\n");
}

// With --watch, the JSON value is on one line, like the updates that follow it.
void PutSubmitted(const Context& context, const v1::SubmitResponse& response,
                  const std::string& text, bool watch) {
  const render::Json json = SubmittedJson(response);
  if (watch && context.output() == Output::kJson) {
    return context.out(render::ToJson(json, /*one_line=*/true));
  }
  PutRow(context, json, text, {"sweep_id", "name", "cells", "expanded", "went_on", "reopened"});
}

absl::StatusOr<int> Run(Commands& commands, const SubmitCommandOptions& options) {
  const Context& context = *commands.context;
  commands.document_name = options.document.file;
  PELAB_ASSIGN_OR_RETURN(const Document document, LoadDocument(options.document));
  if (options.dry_run) return DryRun(context, document, options.submit);
  PutNotes(context, document.sweep);
  PELAB_ASSIGN_OR_RETURN(auto coordinator, FindCoordinator(context.options));
  PELAB_RETURN_IF_ERROR(SendOwnFiles(document.own_files, *coordinator));
  PELAB_ASSIGN_OR_RETURN(const auto response, coordinator->Submit(SubmitRequestOf(
                                                  document, RandomUuid(), options.submit)));
  std::string text = Text(response);
  if (response.went_on()) {
    PELAB_ASSIGN_OR_RETURN(const v1::Sweep now, coordinator->Sweep(Concat(response.sweep_id())));
    text = WentOnText(response, now);
  }
  PutSubmitted(context, response, text, options.watch);
  if (!options.watch) return kExitOk;
  PELAB_ASSIGN_OR_RETURN(const v1::Sweep sweep,
                         WatchToEnd(context, *coordinator, Concat(response.sweep_id()), nullptr,
                                    context.output() == Output::kJson));
  if (context.output() == Output::kTable) context.out(EndText(sweep) + "\n");
  return ExitCodeOf(sweep);
}

}  // namespace

void AddSubmit(Commands& commands) {
  auto options = std::make_shared<SubmitCommandOptions>();
  CLI::App* app = AddCommand(commands, "submit", "hand a sweep file to a coordinator",
                             "  pelab submit table1.yaml --server gpu01:7470\n"
                             "  pelab submit quick.yaml --set train.epochs=3 --watch\n"
                             "  pelab submit table1.yaml --dry-run\n"
                             "  pelab submit table1.yaml --set train.lr=3e-4 --name table1-lr\n"
                             "Submitting the same file again continues its sweep, also if the "
                             "sweep was cancelled. A changed file needs a name of its own "
                             "(--name), or --new.");
  AddDocumentFlags(app, options->document, options->submit);
  app->add_flag("--dry-run", options->dry_run,
                "check and count; store nothing; needs no coordinator");
  app->add_flag("--watch", options->watch, "stay and show progress until every job has ended");
  app->callback([&commands, options] {
    commands.chosen = [&commands, options] { return Run(commands, *options); };
  });
}

}  // namespace pelab::client
