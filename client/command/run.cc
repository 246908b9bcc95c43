#include <CLI/CLI.hpp>

#include "client/command/commands.h"
#include "client/command/dry_run.h"
#include "client/command/notes.h"
#include "client/embedded/runner.h"
#include "client/source/connect.h"
#include "core/base/status.h"
#include "core/base/strings.h"

namespace pelab::client {
namespace {

struct RunCommandOptions {
  DocumentOptions document;
  bool dry_run = false;
  RunOptions run;
};

absl::StatusOr<int> Run(Commands& commands, RunCommandOptions& options) {
  const Context& context = *commands.context;
  commands.document_name = options.document.file;
  if (!context.options.server.empty() && !options.dry_run) {
    return absl::InvalidArgumentError(
        "pelab run starts its own coordinator and does not accept --server (nor PELAB_SERVER); use "
        "pelab submit --watch");
  }
  PELAB_ASSIGN_OR_RETURN(const Document document, LoadDocument(options.document));
  if (options.dry_run) return DryRun(context, document, options.run.submit);
  PELAB_RETURN_IF_ERROR(CheckDatabaseFile(context.options.database));
  PutNotes(context, document.sweep);
  return RunEmbedded(context, document, options.run);
}

}  // namespace

void AddRun(Commands& commands) {
  auto options = std::make_shared<RunCommandOptions>();
  CLI::App* app = AddCommand(
      commands, "run", "run a sweep here: start a coordinator and a worker, train, show results",
      "  pelab run docs/sweeps/quick.yaml\n"
      "  pelab run quick.yaml --db runs/quick.db --set train.epochs=3\n"
      "  pelab run quick.yaml --cpu-slots 2 --threads-per-slot 1\n"
      "Files beside the database FILE: FILE.lock, FILE.artifacts/ (weights), FILE.server.log, "
      "FILE.worker.log, FILE.worker/ (checkpoints and spool). Jobs that are stored already are not "
      "trained again. The next run of the same file continues interrupted jobs where they stopped, "
      "and cancelled ones from their last checkpoint.");
  AddDocumentFlags(app, options->document, options->run.submit);
  app->add_flag("--dry-run", options->dry_run, "check and count; store nothing");
  AddWorkerFlags(app, options->run.worker);
  app->callback([&commands, options] {
    commands.chosen = [&commands, options] { return Run(commands, *options); };
  });
}

}  // namespace pelab::client
