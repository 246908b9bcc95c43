// pause, resume and priority: control when a sweep's jobs run.
#include <CLI/CLI.hpp>

#include "client/command/commands.h"
#include "client/command/control_answer.h"
#include "core/base/strings.h"
#include "core/results/names.h"

namespace pelab::client {
namespace {

struct ControlOptions {
  std::string sweep;
  int priority = 0;
};

bool HasEnded(const v1::SweepControl& control) {
  return control.state() == v1::SWEEP_STATE_FINISHED ||
         control.state() == v1::SWEEP_STATE_CANCELLED;
}

std::string PausedText(const v1::SweepControl& control) {
  if (HasEnded(control))
    return Concat("nothing to do, it is ", results::StateName(control.state()));
  if (!control.paused()) return control.changed() ? "goes on" : "was not paused";
  return Concat(control.changed() ? "paused" : "was paused already", "; running jobs finish");
}

absl::StatusOr<int> Pause(const Context& context, const ControlOptions& options) {
  PELAB_ASSIGN_OR_RETURN(const auto control, Change(context, options.sweep, &Coordinator::Pause));
  return PutControl(context, control, PausedText(control));
}

absl::StatusOr<int> Resume(const Context& context, const ControlOptions& options) {
  PELAB_ASSIGN_OR_RETURN(const auto control, Change(context, options.sweep, &Coordinator::Resume));
  return PutControl(context, control, PausedText(control));
}

absl::StatusOr<int> SetPriority(const Context& context, const ControlOptions& options) {
  v1::SetPriorityRequest request;
  request.set_priority(options.priority);
  PELAB_ASSIGN_OR_RETURN(const auto control,
                         Change(context, options.sweep, &Coordinator::SetPriority, request));
  return PutControl(
      context, control,
      Concat("priority ", control.priority(), control.changed() ? "" : ", as before"));
}

using ControlVerb = absl::StatusOr<int> (*)(const Context&, const ControlOptions&);

CLI::App* Add(Commands& commands, const std::string& name, const std::string& help,
              const std::string& examples, const std::shared_ptr<ControlOptions>& options,
              ControlVerb verb) {
  CLI::App* app = AddCommand(commands, name, help, examples);
  app->add_option("SWEEP", options->sweep, "number or name of a sweep")->required();
  app->callback([&commands, options, verb] {
    commands.chosen = [&commands, options, verb] { return verb(*commands.context, *options); };
  });
  return app;
}

}  // namespace

void AddPause(Commands& commands) {
  Add(commands, "pause", "start no further jobs of a sweep, until it is resumed",
      "  pelab pause table1\n"
      "  pelab pause 3 --server gpu01:7470\n"
      "Running jobs finish (pelab cancel stops them). A job that another sweep claims too "
      "still runs "
      "for that one. The sweep stays paused when the coordinator is restarted.",
      std::make_shared<ControlOptions>(), Pause);
}

void AddResume(Commands& commands) {
  Add(commands, "resume", "let a paused sweep go on",
      "  pelab resume table1\n"
      "  pelab resume 3 --server gpu01:7470",
      std::make_shared<ControlOptions>(), Resume);
}

void AddPriority(Commands& commands) {
  auto options = std::make_shared<ControlOptions>();
  Add(commands, "priority", "change how urgent a sweep is, also while it runs",
      "  pelab priority table1 10\n"
      "  pelab priority 3 -- -5\n"
      "Jobs of the highest priority start first; sweeps of the same priority share the slots "
      "evenly. A job that "
      "several sweeps claim goes with the most urgent of them. Running jobs are not stopped.",
      options, SetPriority)
      ->add_option("PRIORITY", options->priority, "higher first, -1000 to 1000")
      ->required()
      ->check(CLI::Range(-1000, 1000));
}

}  // namespace pelab::client
