#include "worker/agent/options.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "core/base/build_info.h"
#include "core/base/duration.h"
#include "core/base/status.h"
#include "core/base/utf8.h"
#include "core/rpc/cli_options.h"
#include "worker/agent/metrics_server.h"

namespace pelab::agent {
namespace {

constexpr int kUsageExitCode = 2;

constexpr char kFooter[] = R"(
The working directory holds the worker's identity, the events that the coordinator has not
acknowledged, and the checkpoints of its jobs. Keep it over restarts. Each worker needs its own.

SIGTERM and Ctrl-C stop the trainers, whose checkpoints are kept and sent to the coordinator within
8 seconds. Their jobs are queued again at once, and another worker can continue them. To let the
jobs finish, or to empty a host from elsewhere, use pelab workers drain.

On a cluster, say how long the worker may run (--time-limit): it gets no job whose next epoch would
end too late, and gives its jobs back before the limit. A worker that ends by itself or after
SIGTERM exits with 0. In a Slurm script, start it by srun, which passes on the signal of a
preemption or of --signal=TERM@120; without srun the worker gets no signal:

  #SBATCH --time=4:00:00 --signal=TERM@120
  srun --ntasks=1 --kill-on-bad-exit=1 pelab-worker --server gpu-head:7470 --token-file token \
    --workdir /scratch/$USER/pelab/$SLURM_JOB_ID --time-limit slurm --idle-exit 5m

Examples:
  pelab-worker --server unix:/tmp/pelab.sock --cpu-slots 2
  pelab-worker --server gpu-head:7470 --token-file token --tls-ca ca.pem )"
                           R"(--workdir /scratch/$USER/pelab
  CUDA_VISIBLE_DEVICES=0,1 pelab-worker --server localhost:7470 --slots-per-device 2 )"
                           R"(--threads-per-slot 4
  pelab-worker --server gpu-head:7470 --pack 16
  pelab-worker --server gpu-head:7470 --checkpoint-every 1epoch --checkpoint-upload 2m )"
                           R"(--artifact-store /shared/pelab
)";

// Flags as text, before they are checked and converted.
struct Raw {
  std::string server;
  std::string spool_quota = "1GiB";
  std::string checkpoint_every = "30s";
  std::string checkpoint_upload = "5m";
  std::string mps = "auto";
  std::string attempt_timeout = "auto";
  std::string own_encodings = "on";
  std::string preload = "on";
  std::string idle_exit = "off";
  std::string time_limit = "off";
  std::string time_margin = "2m";
  std::string metrics;
};

absl::Status CheckName(const std::string& name) {
  constexpr std::size_t kMostBytes = 100;
  const auto plain = [](unsigned char c) { return absl::ascii_isprint(c) && c != ' '; };
  if (name.size() <= kMostBytes && std::all_of(name.begin(), name.end(), plain)) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat("invalid --name \"", absl::CHexEscape(name),
                                                 "\"; allowed: at most ", kMostBytes,
                                                 " printable ASCII characters without spaces"));
}

// Accepts "3epochs", "1epoch" or a time.
absl::StatusOr<CheckpointCadence> ParseCadence(const std::string& text) {
  CheckpointCadence cadence;
  absl::string_view digits = text;
  if (absl::ConsumeSuffix(&digits, "epochs") || absl::ConsumeSuffix(&digits, "epoch")) {
    if (absl::SimpleAtoi(digits, &cadence.epochs) && cadence.epochs > 0) return cadence;
  } else if (const auto time = ParseDuration(text, "--checkpoint-every"); time.ok()) {
    cadence.time = *time;
    return cadence;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("invalid --checkpoint-every \"", text,
                   "\"; allowed: a number of epochs or a time, such as 1epoch, 5epochs or 30s"));
}

absl::StatusOr<absl::Duration> ParseInterval(const std::string& text) {
  if (text == "0") return absl::ZeroDuration();
  return ParseDuration(text, "--checkpoint-upload");
}

absl::StatusOr<std::optional<absl::Duration>> ParseTimeout(const std::string& text) {
  if (text == "auto") return std::optional<absl::Duration>();
  if (text == "0" || text == "off") return std::optional(absl::InfiniteDuration());
  const auto time = ParseDuration(text, "--attempt-timeout");
  if (time.ok()) return std::optional(*time);
  return absl::InvalidArgumentError(
      absl::StrCat("invalid --attempt-timeout \"", text,
                   "\"; allowed: auto, a time such as 30m or 2h, or off (no limit)"));
}

// A time, or "off". `words` are the other words that the flag takes: "off".
absl::StatusOr<absl::Duration> ParseTimeOrOff(const std::string& text, const char* flag,
                                              const char* words) {
  if (text == "off") return absl::InfiniteDuration();
  const auto time = ParseDuration(text, flag);
  if (time.ok()) return *time;
  return absl::InvalidArgumentError(absl::StrCat(
      "invalid ", flag, " \"", text, "\"; allowed: a time such as 5m or 4h, or ", words));
}

// Reads the three flags. With `--time-limit slurm` the limit is asked for later.
absl::Status ReadRetirement(const Raw& raw, AgentOptions* options) {
  PELAB_ASSIGN_OR_RETURN(options->retirement.idle_exit,
                         ParseTimeOrOff(raw.idle_exit, "--idle-exit", "off"));
  PELAB_ASSIGN_OR_RETURN(options->retirement.margin,
                         ParseDuration(raw.time_margin, "--time-margin"));
  if (options->retirement.margin > absl::Hours(24)) {
    return absl::InvalidArgumentError(
        absl::StrCat("invalid --time-margin \"", raw.time_margin, "\"; allowed: at most 24h"));
  }
  options->slurm_time_limit = raw.time_limit == "slurm";
  if (options->slurm_time_limit) return absl::OkStatus();
  PELAB_ASSIGN_OR_RETURN(options->retirement.time_limit,
                         ParseTimeOrOff(raw.time_limit, "--time-limit", "slurm or off"));
  return absl::OkStatus();
}

absl::Status ReadMetrics(const Raw& raw, AgentOptions* options) {
  if (raw.metrics.empty()) return absl::OkStatus();
  PELAB_ASSIGN_OR_RETURN(options->metrics, rpc::ParseAddress(raw.metrics, rpc::PortZero::kAllowed));
  return CheckMetricsAddress(*options->metrics, options->security.insecure);
}

void AddFlags(CLI::App& app, AgentOptions* options, Raw* raw) {
  app.add_option("--server", raw->server, "The coordinator: unix:PATH or HOST:PORT")
      ->envname("PELAB_SERVER")
      ->type_name("ADDR")
      ->required();
  app.add_option("--workdir", options->work_dir, "Working directory; created if it is missing")
      ->type_name("DIR")
      ->capture_default_str();
  app.add_option("--slots-per-device", options->slots.slots_per_device,
                 "Trainers that run at the same time on each GPU")
      ->check(CLI::Range(1, 64))
      ->capture_default_str();
  app.add_option("--cpu-slots", options->slots.cpu_slots,
                 "Trainers that run at the same time on a host without a GPU (default: cores / "
                 "threads per slot)")
      ->check(CLI::Range(1, 1024));
  app.add_option("--threads-per-slot", options->slots.threads_per_slot,
                 "CPU threads of each trainer")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  app.add_option(
         "--pack", options->slots.pack,
         absl::StrCat("How many jobs that differ only in their seed one trainer gets together: "
                      "with 8, seeds 0..7 of a configuration. The trainer measures whether "
                      "one batch for all is faster than one after another (1: never "
                      "together; default: ",
                      kGpuPack, " on a GPU, ", kCpuPack, " on a CPU)"))
      ->check(CLI::Range(1, 64));
  app.add_option("--mps", raw->mps,
                 "auto: if several trainers share a GPU (--slots-per-device), start NVIDIA's MPS "
                 "for them, unless this host lacks it or runs it already; off: never start it")
      ->check(CLI::IsMember({"auto", "off"}))
      ->capture_default_str();
  app.add_option(
         "--micro-batch", options->micro_batch,
         "Examples of a batch that a trainer computes at once (0: the whole batch; default: on "
         "a CPU as many as fit into half a gigabyte). A job keeps this setting, and the "
         "threads, of its first attempt")
      ->check(CLI::Range(0, 1 << 30));
  app.add_option("--trainer", options->trainer,
                 "The trainer (default: pelab-trainer beside this program, then in PATH)")
      ->type_name("FILE");
  app.add_option("--preload", raw->preload,
                 "Load LibTorch once and fork each trainer from that process, which saves half a "
                 "second of each job (off, or a --trainer that is a script: each trainer loads it)")
      ->type_name("on|off")
      ->check(CLI::IsMember({"on", "off"}))
      ->capture_default_str();
  app.add_option(
         "--spool-quota", raw->spool_quota,
         "Disk space for events that are not acknowledged yet; trainers wait when it is used up")
      ->type_name("SIZE")
      ->capture_default_str();
  app.add_option("--checkpoint-every", raw->checkpoint_every,
                 "How often a trainer keeps a checkpoint, always at the end of an epoch: a number "
                 "of epochs (1epoch, 5epochs) or a time")
      ->type_name("EPOCHS|TIME")
      ->capture_default_str();
  app.add_option("--checkpoint-upload", raw->checkpoint_upload,
                 "How often the newest checkpoint is sent to the coordinator; also sent when this "
                 "worker drains or ends (0: never)")
      ->type_name("TIME")
      ->capture_default_str();
  app.add_option("--attempt-timeout", raw->attempt_timeout,
                 "Stop a trainer that reported nothing for this long; its job is tried again. "
                 "auto: 10 minutes, or 20 times its longest epoch or analysis if that is longer; "
                 "off: never")
      ->type_name("TIME|auto|off")
      ->capture_default_str();
  app.add_option("--idle-exit", raw->idle_exit, "End after so long without a job. off: stay")
      ->type_name("TIME|off")
      ->capture_default_str();
  app.add_option("--time-limit", raw->time_limit,
                 "How long this worker may run from now on; slurm: as long as its Slurm job may "
                 "(squeue is asked once). It takes no job whose next epoch would end too late, "
                 "and ends before the limit. off: no limit")
      ->type_name("TIME|slurm|off")
      ->capture_default_str();
  app.add_option("--time-margin", raw->time_margin,
                 "Give the jobs back so long before --time-limit, or two epochs before if that is "
                 "earlier; at most half of the limit")
      ->type_name("TIME")
      ->capture_default_str();
  app.add_option("--name", options->name,
                 "The worker's name in `pelab workers` and in messages (default: this host's name)")
      ->type_name("NAME");
  app.add_option(
         "--own-encodings", raw->own_encodings,
         "Whether to take jobs with encodings from TorchScript files. Their code comes from "
         "the person who submits them and runs in this worker's trainers (off: such jobs wait for "
         "another worker)")
      ->type_name("on|off")
      ->check(CLI::IsMember({"on", "off"}))
      ->capture_default_str();
  app.add_option("--artifact-store", options->artifact_store,
                 "Write files to the coordinator's --artifact-store, a disk that both see as DIR "
                 "here, instead of sending them")
      ->type_name("DIR")
      ->check(CLI::ExistingDirectory);
  app.add_option("--metrics", raw->metrics,
                 "Serve the load of the GPUs at /metrics of HOST:PORT, for Prometheus; port 0: any "
                 "free port")
      ->type_name("ADDR");
  rpc::AddTraceFlag(app, &options->trace_file);
  app.add_option("--parent-fd", options->parent_fd,
                 "End when this inherited pipe reaches end-of-file")
      ->type_name("FD")
      ->check(CLI::NonNegativeNumber);
  rpc::AddClientSecurityFlags(app, &options->security);
  rpc::AddLoggingFlags(app, &options->logging);
}

int Complain(const absl::Status& status) {
  std::cerr << "pelab-worker: " << Escape(std::string(status.message())) << "\n";
  return kUsageExitCode;
}

}  // namespace

CommandLine ParseCommandLine(int argc, char** argv) {
  CommandLine line;
  Raw raw;
  CLI::App app("pelab-worker trains a coordinator's jobs on this host.", "pelab-worker");
  app.set_version_flag("--version", "pelab-worker " + VersionText());
  app.footer(kFooter);
  AddFlags(app, &line.options, &raw);
  if (const std::optional<int> ended = rpc::ParseFlags(app, argc, argv)) {
    line.exit_code = *ended;
    return line;
  }
  absl::StatusOr<rpc::Address> server = rpc::ParseAddress(raw.server);
  absl::StatusOr<std::uint64_t> quota = ParseByteSize(raw.spool_quota, "--spool-quota");
  const auto every = ParseCadence(raw.checkpoint_every);
  const auto upload = ParseInterval(raw.checkpoint_upload);
  const auto timeout = ParseTimeout(raw.attempt_timeout);
  for (const absl::Status& status :
       {server.status(), quota.status(), every.status(), upload.status(), timeout.status(),
        CheckName(line.options.name), ReadRetirement(raw, &line.options),
        ReadMetrics(raw, &line.options)}) {
    if (!status.ok()) {
      line.exit_code = Complain(status);
      return line;
    }
  }
  line.options.server = *std::move(server);
  line.options.spool_quota_bytes = *quota;
  line.options.checkpoint_every = *every;
  line.options.attempt_timeout = *timeout;
  line.options.mps = raw.mps == "auto";
  line.options.preload = raw.preload == "on";
  line.options.own_encodings = raw.own_encodings == "on";
  line.options.checkpoint_upload = *upload;
  line.go_on = true;
  return line;
}

}  // namespace pelab::agent
