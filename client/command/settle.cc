// settle: spends seeds until each claim of a sheet is decided or given up.
#include <CLI/CLI.hpp>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "client/claims/judged_sheet.h"
#include "client/claims/settler.h"
#include "client/claims/sheet_cost.h"
#include "client/command/commands.h"
#include "client/embedded/session.h"
#include "client/options/times.h"
#include "client/source/connect.h"
#include "client/terminal/put.h"
#include "client/terminal/watch.h"
#include "core/base/duration.h"
#include "core/base/status.h"
#include "core/base/strings.h"

namespace pelab::client {
namespace {

struct SettleCommandOptions {
  std::string file;
  std::string budget;
  std::string until;
  std::int64_t max_jobs = -1;
  bool any_seeds = false;
  int slots = 0;
  std::vector<std::string> put_aside;
  bool dry_run = false;
  WorkerOptions worker;
};

absl::StatusOr<SettleOptions> ReadOptions(const SettleCommandOptions& options) {
  SettleOptions settle{
      .any_seeds = options.any_seeds, .slots = options.slots, .put_aside = options.put_aside};
  if (!options.budget.empty()) {
    PELAB_ASSIGN_OR_RETURN(settle.budget.slot_time, ParseBudget(options.budget));
  }
  if (!options.until.empty()) {
    PELAB_ASSIGN_OR_RETURN(settle.budget.until,
                           ParseUntil(options.until, absl::Now(), absl::LocalTimeZone()));
  }
  if (options.max_jobs >= 0) settle.budget.jobs = options.max_jobs;
  return settle;
}

// The command that goes on with the same limits.
std::string AgainText(const Context& context, const SettleCommandOptions& options) {
  std::string text = Concat("pelab settle ", options.file, " --db ", context.options.database);
  const auto add = [&](const char* flag, const std::string& value) {
    if (!value.empty()) text += Concat(" ", flag, " ", value);
  };
  const auto number = [](std::optional<std::int64_t> value) {
    return value ? Concat(*value) : std::string();
  };
  add("--budget", options.budget);
  add("--max-jobs", options.max_jobs >= 0 ? Concat(options.max_jobs) : "");
  add("--until", options.until);
  add("--cpu-slots", number(options.worker.cpu_slots));
  add("--slots-per-device", number(options.worker.slots_per_device));
  add("--threads-per-slot", number(options.worker.threads_per_slot));
  return text;
}

absl::Status Watch(const Context& context, Coordinator& coordinator, const std::string& sweep,
                   Canceller* canceller) {
  return WatchToEnd(context, coordinator, sweep, canceller, /*json_lines=*/false).status();
}

// Settles with a coordinator and a worker of its own, or with the coordinator of the database.
class SettleSession final : public EmbeddedSession {
 public:
  // `again` is the command that goes on.
  SettleSession(const Context& context, const SheetFile& file, const SettleOptions& options,
                const WorkerOptions& worker, std::string again)
      : EmbeddedSession(context, worker),
        again_(std::move(again)),
        settler_(context, file, options,
                 {.ensure_worker = [this] { return EnsureWorker(); },
                  .watch =
                      [this](const std::string& sweep) {
                        return Follow([&](Canceller& canceller) {
                          return Watch(this->context(), *coordinator_, sweep, &canceller);
                        });
                      }}) {}

 protected:
  absl::StatusOr<int> Work(Coordinator& coordinator) override {
    coordinator_ = &coordinator;
    PELAB_ASSIGN_OR_RETURN(const int code, settler_.Run(coordinator));
    Stop();
    return code;
  }
  std::string GoOnHint() const override { return Concat("go on with: ", again_); }
  std::string JoinedHint() const override {
    return Concat("the round goes on; go on after it with: ", again_);
  }

 private:
  const std::string again_;
  Coordinator* coordinator_ = nullptr;
  Settler settler_;
};

absl::StatusOr<int> Run(Commands& commands, const SettleCommandOptions& options) {
  const Context& context = *commands.context;
  PELAB_ASSIGN_OR_RETURN(const SettleOptions settle, ReadOptions(options));
  PELAB_ASSIGN_OR_RETURN(const SheetFile file,
                         FindSheetFile(context.options, options.file, &commands.document_name));
  if (options.dry_run) {
    const auto& budget = settle.budget.slot_time;
    return CheckSheet(context, file, {.budget = budget ? absl::ToDoubleSeconds(*budget) : 0});
  }
  if (context.options.server.empty()) {
    PELAB_RETURN_IF_ERROR(CheckDatabaseFile(context.options.database));
    return SettleSession(context, file, settle, options.worker, AgainText(context, options)).Run();
  }
  PELAB_ASSIGN_OR_RETURN(const auto coordinator, FindCoordinator(context.options));
  Settler settler(
      context, file, settle,
      {.ensure_worker = [] { return absl::OkStatus(); },
       .watch =
           [&](const std::string& sweep) { return Watch(context, *coordinator, sweep, nullptr); }});
  return settler.Run(*coordinator);
}

}  // namespace

void AddSettle(Commands& commands) {
  auto options = std::make_shared<SettleCommandOptions>();
  CLI::App* app = AddCommand(
      commands, "settle", "spend seeds on a claim sheet until its claims hold or fail",
      "  pelab settle docs/claims/quick.yaml --budget 30m\n"
      "  pelab settle table1.claims.yaml --server gpu01:7470 --until 23:00\n"
      "  pelab settle table1.claims.yaml --dry-run\n"
      "The sheet is registered first, so that seeds stored before it can be told apart. Each round "
      "gives the cells of all open claims their next seeds. The verdicts are valid whenever the "
      "command stops; run it again to continue. It starts a coordinator and a worker if neither "
      "--server nor PELAB_SERVER names a coordinator, and none serves the database.");
  app->add_option("SHEET", options->file,
                  "a claim sheet, or the name, number or hash of a registered one")
      ->required();
  app->add_option("--budget", options->budget,
                  "slot time that this command may spend: 3h, 90m; a round that does not fit is "
                  "not begun, nor gone on with");
  app->add_option("--max-jobs", options->max_jobs,
                  "jobs that this command may run, those that a round under way needs included")
      ->check(CLI::Range(std::int64_t{0}, std::int64_t{1'000'000'000}))
      ->type_name("N");
  app->add_option("--until", options->until,
                  "time of day, or a time in UTC, by which the last round has to end: 23:00");
  app->add_flag(
      "--fresh-seeds,!--no-fresh-seeds",
      [options](std::int64_t fresh) { options->any_seeds = fresh < 0; },
      "begin behind the last seed that a cell of the sheet has [default]; otherwise at the "
      "sheet's first_seed, and what is stored already is exploratory");
  app->add_option("--slots", options->slots,
                  "slots that a round keeps busy [default: those of the workers that are connected "
                  "when the sheet is registered]")
      ->check(CLI::Range(1, 100'000))
      ->type_name("N");
  app->add_option("--put-aside", options->put_aside,
                  "a claim that gets no further seeds, for good; it keeps the e-values of the last "
                  "round that has ended; can be repeated")
      ->type_name("CLAIM")
      ->expected(1)
      ->take_all();
  app->add_flag("--dry-run", options->dry_run,
                "cells, jobs and expected time, as pelab claims check; nothing is run or stored")
      ->excludes("--put-aside");
  AddWorkerFlags(app, options->worker);
  app->callback([&commands, options] {
    commands.chosen = [&commands, options] { return Run(commands, *options); };
  });
}

}  // namespace pelab::client
