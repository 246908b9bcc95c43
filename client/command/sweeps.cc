// sweeps: lists sweeps, renames them, sets notes, and deletes a sweep with its results.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>
#include <string>

#include "client/command/commands.h"
#include "client/command/control_answer.h"
#include "client/source/connect.h"
#include "client/terminal/put.h"
#include "client/terminal/show.h"
#include "client/terminal/table.h"
#include "core/base/status.h"
#include "core/base/strings.h"
#include "core/render/text.h"
#include "core/results/names.h"
#include "core/results/rows.h"

namespace pelab::client {
namespace {

using Align = render::Column::Align;

struct SweepsOptions {
  std::string sweep;
  std::string text;  // a name or a note
  bool yes = false;
  bool dry_run = false;
};

std::string SweepsTable(const std::vector<v1::Sweep>& sweeps, const render::Style& style) {
  render::Table table({{"sweep", Align::kRight},
                       {"name", Align::kLeft, true},
                       {"state"},
                       {"succeeded", Align::kRight},
                       {"protocol"},
                       {"submitted"},
                       {"note", Align::kLeft, true}});
  for (const v1::Sweep& sweep : sweeps) {
    table.AddRow({Concat(sweep.sweep_id()), sweep.name(), results::StateName(sweep.state()),
                  Concat(sweep.jobs().succeeded(), "/", TotalOf(sweep.jobs())), sweep.protocol(),
                  render::FormatTime(sweep.created_at_ms()), sweep.note()});
  }
  return table.Render(style);
}

absl::StatusOr<int> ListSweeps(const Context& context) {
  PELAB_ASSIGN_OR_RETURN(auto source, FindSource(context.options));
  PELAB_ASSIGN_OR_RETURN(const auto sweeps, source->Sweeps());
  return Put(
      context,
      {.json = [&] { return SweepsJson(*source, sweeps); },
       .text = [&] { return sweeps.empty() ? "no sweeps\n" : SweepsTable(sweeps, context.style); },
       .rows = "sweeps",
       .columns = results::ColumnsOf<v1::Sweep>()});
}

absl::StatusOr<int> Rename(const Context& context, const SweepsOptions& options) {
  v1::RenameRequest request;
  request.set_name(options.text);
  PELAB_ASSIGN_OR_RETURN(const auto control,
                         Change(context, options.sweep, &Coordinator::Rename, request));
  return PutControl(context, control, control.changed() ? "renamed" : "was named so already");
}

absl::StatusOr<int> SetNote(const Context& context, const SweepsOptions& options) {
  v1::SetNoteRequest request;
  request.set_note(options.text);
  PELAB_ASSIGN_OR_RETURN(const auto control,
                         Change(context, options.sweep, &Coordinator::SetNote, request));
  return PutControl(context, control, options.text.empty() ? "has no note" : "noted");
}

std::string JobsText(std::uint64_t jobs) { return Concat(jobs, jobs == 1 ? " job" : " jobs"); }

std::string KeptText(const v1::DeleteResponse& response) {
  if (response.jobs_kept() == 0) return "";
  return Concat("; ", JobsText(response.jobs_kept()), " of other sweeps, too, ",
                response.jobs_kept() == 1 ? "stays" : "stay");
}

absl::StatusOr<bool> Agreed(const Context& context, const v1::DeleteResponse& would) {
  if (isatty(STDIN_FILENO) == 0) {
    return absl::InvalidArgumentError(
        "deleting cannot be undone, and there is no terminal to ask on: give --yes "
        "(--dry-run says what would go)");
  }
  context.err(Concat("delete sweep ", would.sweep_id(), " ", render::Escape(would.name()), ", ",
                     JobsText(would.jobs_deleted()), " with all results", KeptText(would),
                     "? This cannot be undone. [y/N] "));
  std::string answer;
  std::getline(std::cin, answer);
  return answer == "y" || answer == "Y" || answer == "yes";
}

int PutDeleted(const Context& context, const v1::DeleteResponse& response, bool dry_run) {
  return PutRow(context,
                {{"sweep_id", response.sweep_id()},
                 {"name", response.name()},
                 {"jobs_deleted", response.jobs_deleted()},
                 {"jobs_kept", response.jobs_kept()},
                 {"more", response.more()},
                 {"dry_run", dry_run}},
                Concat("sweep ", response.sweep_id(), " ", render::Escape(response.name()), ": ",
                       JobsText(response.jobs_deleted()), dry_run ? " would be" : "",
                       " deleted with all results", KeptText(response), "\n",
                       dry_run           ? "nothing was deleted\n"
                       : response.more() ? "the sweep is gone; a coordinator goes on deleting "
                                           "its jobs\n"
                                         : ""));
}

absl::StatusOr<v1::DeleteResponse> Ask(const Context& context, const v1::DeleteRequest& request) {
  absl::StatusOr<v1::DeleteResponse> response;
  PELAB_RETURN_IF_ERROR(CallOnce(context, [&](Coordinator& coordinator) {
                          response = coordinator.Delete(request);
                          return response.status();
                        }).status());
  return response;
}

absl::StatusOr<int> Delete(const Context& context, const SweepsOptions& options) {
  v1::DeleteRequest request;
  request.mutable_sweep()->set_sweep(options.sweep);
  if (options.dry_run || !options.yes) {
    request.set_dry_run(true);
    PELAB_ASSIGN_OR_RETURN(const auto would, Ask(context, request));
    if (options.dry_run) return PutDeleted(context, would, true);
    PELAB_ASSIGN_OR_RETURN(const bool agreed, Agreed(context, would));
    if (!agreed) {
      context.err("pelab: nothing was deleted\n");
      return kExitFailed;
    }
    request.set_dry_run(false);
    request.mutable_sweep()->set_sweep(Concat(would.sweep_id()));
  }
  PELAB_ASSIGN_OR_RETURN(const auto response, Ask(context, request));
  return PutDeleted(context, response, false);
}

using SweepsVerb = absl::StatusOr<int> (*)(const Context&, const SweepsOptions&);

}  // namespace

void AddSweeps(Commands& commands) {
  CLI::App* app = AddCommand(
      commands, "sweeps", "list sweeps; rename, annotate or delete one",
      "  pelab sweeps\n"
      "  pelab sweeps rename quick first-try\n"
      "  pelab sweeps note 3 \"figure 4, with the old learning rate\"\n"
      "  pelab sweeps delete first-try --dry-run\n"
      "A sweep that has ended or was cancelled can be deleted: its jobs that no other sweep has go "
      "with all of their results.");
  app->require_subcommand(0, 1);
  app->fallthrough();
  app->callback([&commands, app] {
    if (app->get_subcommands().empty()) {
      commands.chosen = [&commands] { return ListSweeps(*commands.context); };
    }
  });
  app->add_subcommand("list", "all sweeps, newest first")->callback([&commands] {
    commands.chosen = [&commands] { return ListSweeps(*commands.context); };
  });
  auto options = std::make_shared<SweepsOptions>();
  const auto add = [&](const char* name, const char* help, SweepsVerb verb) {
    CLI::App* command = app->add_subcommand(name, help);
    command->add_option("SWEEP", options->sweep, "number or name of a sweep")->required();
    command->callback([&commands, options, verb] {
      commands.chosen = [&commands, options, verb] { return verb(*commands.context, *options); };
    });
    return command;
  };
  add("rename", "give a sweep another name", Rename)
      ->add_option("NAME", options->text, "letters, digits, \".\", \"_\" or \"-\"; no number")
      ->required();
  add("note", "write a note about a sweep; an empty one removes it", SetNote)
      ->add_option("TEXT", options->text, "at most 4096 bytes")
      ->required();
  CLI::App* remove = add("delete", "delete a sweep and its jobs that no other sweep has", Delete);
  remove->add_flag("--yes", options->yes, "do not ask");
  remove->add_flag("--dry-run", options->dry_run, "count what would go; delete nothing");
}

}  // namespace pelab::client
