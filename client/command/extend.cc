#include <CLI/CLI.hpp>

#include "client/command/commands.h"
#include "client/embedded/call_session.h"
#include "client/options/document.h"
#include "client/options/repeat_command.h"
#include "client/terminal/put.h"
#include "core/base/status.h"
#include "core/base/strings.h"
#include "core/render/text.h"
#include "core/results/rows.h"

namespace pelab::client {
namespace {

struct ExtendOptions {
  std::string sweep;
  std::vector<std::string> seeds;
  bool dry_run = false;
};

std::string Text(const v1::ExtendResponse& response, bool dry_run) {
  std::string text = Concat("sweep ", response.sweep_id(), " ", render::Escape(response.name()));
  if (response.new_seeds().empty()) return text + ": it has these seeds already\n";
  text += Concat(dry_run ? ", would get seeds " : ", got seeds ", response.new_seeds(), ": ",
                 response.expanded() ? CountsText(response.counts())
                                     : Concat(response.cells(), " cells accepted, being expanded"),
                 "\n");
  return dry_run ? text + "nothing was stored\n" : text;
}

absl::StatusOr<int> Run(const Context& context, const ExtendOptions& options) {
  v1::ExtendRequest request;
  request.mutable_sweep()->set_sweep(options.sweep);
  request.set_seeds(Join(options.seeds, ","));
  request.set_dry_run(options.dry_run);
  v1::ExtendResponse response;
  v1::Sweep sweep;
  PELAB_ASSIGN_OR_RETURN(
      const Asked asked, CallOnce(context, [&](Coordinator& coordinator) -> absl::Status {
        PELAB_ASSIGN_OR_RETURN(response, coordinator.Extend(request));
        PELAB_ASSIGN_OR_RETURN(sweep, coordinator.Sweep(Concat(response.sweep_id())));
        return absl::OkStatus();
      }));
  std::string text = Text(response, options.dry_run);
  if (asked == Asked::kOwnCoordinator && !options.dry_run) text += TrainText(context, sweep);
  const render::Json json = {
      {"sweep_id", response.sweep_id()},
      {"name", response.name()},
      {"new_seeds", response.new_seeds()},
      {"cells", response.cells()},
      {"dry_run", options.dry_run},
      {"expanded", response.expanded()},
      {"counts", response.expanded() ? results::ToJson(response.counts()) : render::Json(nullptr)}};
  return PutRow(context, json, text,
                {"sweep_id", "name", "new_seeds", "cells", "dry_run", "expanded"});
}

}  // namespace

void AddExtend(Commands& commands) {
  auto options = std::make_shared<ExtendOptions>();
  CLI::App* app = AddCommand(commands, "extend",
                             "add seeds to a sweep, also while it runs; nothing is trained again",
                             "  pelab extend table1 --seed 5..9\n"
                             "  pelab extend table1 --seed 5..9 --seed 42 --dry-run\n"
                             "Seeds that the sweep already has are ignored. A finished sweep is "
                             "active again until the new jobs have ended. If no coordinator serves "
                             "--db, the seeds are stored, and the next pelab run trains them.");
  app->add_option("SWEEP", options->sweep, "number or name of a sweep")->required();
  app->add_option("--seed", options->seeds, "5, or 5..9, or 5..9,12; repeatable")
      ->type_name("SEEDS")
      ->required()
      ->expected(1)
      ->take_all();
  app->add_flag("--dry-run", options->dry_run, "count what would be new; store nothing");
  app->callback([&commands, options] {
    commands.chosen = [&commands, options] { return Run(*commands.context, *options); };
  });
}

}  // namespace pelab::client
