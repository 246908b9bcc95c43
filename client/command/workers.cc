#include <CLI/CLI.hpp>

#include "client/command/commands.h"
#include "client/source/connect.h"
#include "client/terminal/put.h"
#include "client/terminal/table.h"
#include "client/terminal/worker_names.h"
#include "core/base/status.h"
#include "core/base/strings.h"
#include "core/event/enums.h"
#include "core/render/text.h"
#include "core/results/rows.h"

namespace pelab::client {
namespace {

using Align = render::Column::Align;

// "online", or "online, 35 min left" for a worker with a time limit.
std::string StateAndTime(const v1::WorkerRow& worker) {
  if (!worker.has_time_left_ms()) return worker.state();
  const std::uint64_t seconds = worker.time_left_ms() / 1000;
  return Concat(worker.state(), ", ",
                seconds < 120 ? Concat(seconds, " s") : Concat(seconds / 60, " min"), " left");
}

std::string WorkerTable(const std::vector<v1::WorkerRow>& workers, const render::Style& style) {
  render::Table table({{"worker", Align::kLeft, true},
                       {"id"},
                       {"host", Align::kLeft, true},
                       {"state"},
                       {"busy", Align::kRight},
                       {"last seen"},
                       {"version"}});
  for (const v1::WorkerRow& worker : workers) {
    table.AddRow({worker.name(), ShortId(worker, workers), worker.host(), StateAndTime(worker),
                  Concat(worker.busy_slots(), "/", worker.slots()),
                  render::FormatTime(worker.last_seen_at_ms()), worker.version()},
                 worker.state() == "online" ? "" : "2");
  }
  return table.Render(style);
}

absl::StatusOr<int> ListWorkers(const Context& context) {
  auto source = FindSource(context.options);
  if (!source.ok()) return source.status();
  auto workers = (*source)->Workers();
  if (!workers.ok()) return workers.status();
  const auto rows = [&] { return results::ToJsonArray(*workers); };
  const auto text = [&] {
    std::string text = workers->empty() ? "no workers\n" : WorkerTable(*workers, context.style);
    for (const std::string& line : SilentWorkers(*workers)) text += render::Escape(line) + "\n";
    return text;
  };
  return Put(context, {.json =
                           [&] {
                             return render::Json{{"workers", rows()}};
                           },
                       .text = text,
                       .columns = results::ColumnsOf<v1::WorkerRow>(),
                       .csv = rows});
}

struct WorkersOptions {
  std::string worker;
  std::string mode = "finish";
};

std::string DrainText(const v1::DrainWorkerResponse& response) {
  const std::string worker = Concat(
      "worker ", render::Escape(response.name().empty() ? response.worker_id() : response.name()),
      " on ", render::Escape(response.host()), ": ");
  if (response.drain().empty()) {
    return worker + (response.changed() ? "takes jobs again\n" : "was not draining\n");
  }
  if (response.attempts() == 0) return worker + "drained, accepts no more jobs\n";
  return Concat(worker, "accepts no more jobs; ", response.attempts(),
                response.attempts() == 1 ? " job " : " jobs ",
                response.drain() == "finish" ? "of it may end\n" : "of it go elsewhere\n");
}

absl::StatusOr<int> Drain(const Context& context, const std::string& worker, v1::Drain::Mode mode) {
  PELAB_ASSIGN_OR_RETURN(auto coordinator, FindCoordinator(context.options));
  v1::DrainWorkerRequest request;
  request.set_worker(worker);
  request.set_mode(mode);
  PELAB_ASSIGN_OR_RETURN(const auto response, coordinator->DrainWorker(request));
  const render::Json json = {
      {"worker_id", response.worker_id()},
      {"name", response.name()},
      {"host", response.host()},
      {"drain", response.drain().empty() ? render::Json(nullptr) : render::Json(response.drain())},
      {"busy_slots", response.busy_slots()},
      {"changed", response.changed()},
      {"attempts", response.attempts()}};
  return PutRow(context, json, DrainText(response),
                {"worker_id", "host", "drain", "busy_slots", "changed", "attempts", "name"});
}

constexpr char kWorkerHelp[] =
    "its name, its id (or the first 6 characters or more), or its host; must match one worker";

}  // namespace

void AddWorkers(Commands& commands) {
  CLI::App* app = AddCommand(commands, "workers", "the workers, their slots and what they do",
                             "  pelab workers\n"
                             "  pelab workers --server gpu01:7470 --output json\n"
                             "  pelab workers drain gpu1 --mode checkpoint\n"
                             "  pelab workers resume gpu1\n"
                             "A drain lasts until `pelab workers resume`, also over restarts; the "
                             "daemon stays connected.");
  app->require_subcommand(0, 1);
  app->fallthrough();
  auto options = std::make_shared<WorkersOptions>();
  CLI::App* drain = app->add_subcommand("drain", "let a worker take no more jobs");
  drain->add_option("WORKER", options->worker, kWorkerHelp)->required();
  drain
      ->add_option(
          "--mode", options->mode,
          "finish: its jobs run to their end; checkpoint: they stop with their checkpoints "
          "kept (within 30 s) and go on elsewhere; kill: they stop at once [default: "
          "finish]")
      ->check(CLI::IsMember({"finish", "checkpoint", "kill"}));
  CLI::App* resume = app->add_subcommand("resume", "let a worker take jobs again");
  resume->add_option("WORKER", options->worker, kWorkerHelp)->required();
  app->callback([&commands, app, drain, resume, options] {
    commands.chosen = [&commands, app, drain, resume, options]() -> absl::StatusOr<int> {
      if (app->got_subcommand(drain)) {
        return Drain(*commands.context, options->worker, *event::ParseDrain(options->mode));
      }
      if (app->got_subcommand(resume)) {
        return Drain(*commands.context, options->worker, v1::Drain::RESUME);
      }
      return ListWorkers(*commands.context);
    };
  });
}

}  // namespace pelab::client
