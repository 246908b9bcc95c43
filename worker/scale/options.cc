#include "worker/scale/options.h"

#include <CLI/CLI.hpp>
#include <iostream>
#include <optional>

#include "absl/strings/str_cat.h"
#include "core/base/build_info.h"
#include "core/base/duration.h"
#include "core/base/status.h"
#include "core/base/utf8.h"
#include "core/rpc/cli_options.h"

namespace pelab::scale {
namespace {

constexpr int kUsageExitCode = 2;

constexpr char kFooter[] = R"(
pelab-scale runs where sbatch does, such as on a login node, and asks the coordinator every few
seconds how many jobs wait. Workers that it starts end by themselves when no job comes. It cancels
an allocation only if its worker does not connect in time, or if it still waits when its queue is
removed with --cancel-waiting. It stores nothing: after a restart, squeue says what runs. Stopping
it stops no worker.

Without a file it takes the queues from the coordinator, where `pelab alloc` manages them, and needs
the role scaler. Every operator of the coordinator then decides the arguments of sbatch and the
commands that run as you. With a file, which has a table for each queue (docs/operations.md, Slurm),
it takes nothing from the coordinator, and the role reader is enough:

  [queue.gpu]
  time_limit = "4h"
  max_allocations = 8
  sbatch = ["--partition=gpu", "--gres=gpu:1"]
  workdir = "/scratch/me/pelab"
  worker = ["--server", "gpu-head:7470", "--token-file", "/home/me/worker.token"]

Examples:
  pelab-scale --server gpu-head:7470 --token-file scaler.token
  pelab-scale queues.toml --server gpu-head:7470 --token-file reader.token
  pelab-scale queues.toml --server gpu-head:7470 --token-file reader.token --list
  pelab-scale queues.toml --server gpu-head:7470 --token-file reader.token --dry-run
)";

struct Raw {
  std::string server;
  std::string interval = "5s";
  std::string look = "30s";
  bool list = false;
  bool dry_run = false;
};

void AddFlags(CLI::App& app, ScaleOptions* options, Raw* raw) {
  app.add_option("QUEUES", options->queues_file,
                 "A TOML file with the queues (default: those of the coordinator)")
      ->type_name("FILE");
  app.add_option("--server", raw->server, "The coordinator: unix:PATH or HOST:PORT")
      ->envname("PELAB_SERVER")
      ->type_name("ADDR")
      ->required();
  auto* list = app.add_flag("--list", raw->list, "Print the allocations there are, and end");
  app.add_flag("--dry-run", raw->dry_run,
               "Print what would be submitted now and whether Slurm would take it, and end")
      ->excludes(list);
  app.add_option("--tag", options->tag,
                 "Tells this coordinator's allocations from those of others; letters, digits and "
                 "_ - . : / [ ] (default: the coordinator's address)")
      ->type_name("TEXT");
  app.add_option("--interval", raw->interval, "How often the coordinator is asked")
      ->type_name("TIME")
      ->capture_default_str();
  app.add_option("--look", raw->look, "How often squeue is asked, once for all queues")
      ->type_name("TIME")
      ->capture_default_str();
  rpc::AddClientSecurityFlags(app, &options->security);
  rpc::AddLoggingFlags(app, &options->logging);
  rpc::AddTraceFlag(app, &options->trace_file);
}

absl::Status CheckTag(const std::string& tag) {
  constexpr std::size_t kMostBytes = 100;
  constexpr char kAllowed[] =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.:/[]";
  if (tag.size() <= kMostBytes && tag.find_first_not_of(kAllowed) == std::string::npos) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat("the tag \"", Escape(Shorten(tag, kMostBytes)),
                                                 "\" is not allowed; choose --tag: "
                                                 "at most ",
                                                 kMostBytes, " letters, digits and _ - . : / [ ]"));
}

absl::Status Convert(const Raw& raw, ScaleOptions* options) {
  PELAB_ASSIGN_OR_RETURN(options->server, rpc::ParseAddress(raw.server));
  PELAB_ASSIGN_OR_RETURN(options->interval, ParseDuration(raw.interval, "--interval"));
  PELAB_ASSIGN_OR_RETURN(options->look, ParseDuration(raw.look, "--look"));
  if (options->tag.empty()) options->tag = options->server.ToString();
  options->command = raw.list ? Command::kList : raw.dry_run ? Command::kDryRun : Command::kRun;
  return CheckTag(options->tag);
}

}  // namespace

CommandLine ParseCommandLine(int argc, char** argv) {
  CommandLine line;
  Raw raw;
  CLI::App app("pelab-scale starts workers on a Slurm cluster when jobs wait.", "pelab-scale");
  app.set_version_flag("--version", "pelab-scale " + VersionText());
  app.footer(kFooter);
  AddFlags(app, &line.options, &raw);
  if (const std::optional<int> ended = rpc::ParseFlags(app, argc, argv)) {
    line.exit_code = *ended;
    return line;
  }
  if (const absl::Status status = Convert(raw, &line.options); !status.ok()) {
    std::cerr << "pelab-scale: " << Escape(std::string(status.message())) << "\n";
    line.exit_code = kUsageExitCode;
    return line;
  }
  line.go_on = true;
  return line;
}

}  // namespace pelab::scale
