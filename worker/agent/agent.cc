#include "worker/agent/agent.h"

#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/clock.h"
#include "core/base/log.h"
#include "core/base/log_scope.h"
#include "core/base/mutex.h"
#include "core/base/status.h"
#include "core/base/utf8.h"
#include "core/trace/command_trace.h"
#include "worker/agent/capabilities.h"
#include "worker/agent/devices.h"
#include "worker/agent/energy.h"
#include "worker/agent/file_cache.h"
#include "worker/agent/fleet_client.h"
#include "worker/agent/gpu_faults.h"
#include "worker/agent/loads.h"
#include "worker/agent/metrics_server.h"
#include "worker/agent/mps.h"
#include "worker/agent/nvml.h"
#include "worker/agent/retirement.h"
#include "worker/agent/session_runner.h"
#include "worker/agent/slurm.h"
#include "worker/agent/store_transfer.h"
#include "worker/agent/strays.h"
#include "worker/agent/supervisor.h"
#include "worker/agent/work_dir.h"
#include "worker/agent/worker_metrics.h"

namespace pelab::agent {
namespace {

constexpr absl::Duration kTrainerGrace = absl::Seconds(1);
constexpr absl::Duration kFarewellPatience = absl::Seconds(3);
constexpr absl::Duration kFarewellUpload = absl::Seconds(8);
// Added to the time that the daemon may take to shut down.
constexpr absl::Duration kLastResort = absl::Milliseconds(1500);

// Ends the process if shutting down takes too long. Its trainers then end by themselves, because
// their pipe closes.
class LastResort {
 public:
  LastResort(ShutdownSignal* shutdown, absl::Duration patience)
      : thread_([this, shutdown, patience] {
          // Checks for the end and for the signal in turn, because a daemon that ends without a
          // signal cannot wake a wait for the signal.
          while (!over_.HasBeenNotified()) {
            if (!shutdown->WaitFor(absl::Milliseconds(100))) continue;
            if (over_.WaitFor(patience + kLastResort)) return;
            spdlog::error("shutting down took too long; ending at once");
            _exit(1);
          }
        }) {}
  ~LastResort() {
    over_.Notify();
    thread_.join();
  }
  LastResort(const LastResort&) = delete;
  LastResort& operator=(const LastResort&) = delete;

 private:
  Notification over_;
  std::thread thread_;
};

std::string HostName() {
  char name[HOST_NAME_MAX + 1] = {};
  return gethostname(name, sizeof name - 1) == 0 ? ValidUtf8(name) : "unknown";
}

// Null if NVML cannot be loaded.
std::unique_ptr<Nvml> FindNvml() {
  absl::StatusOr<std::unique_ptr<Nvml>> nvml = LoadNvml();
  if (nvml.ok()) return *std::move(nvml);
  spdlog::debug("no GPUs: {}", std::string(nvml.status().message()));
  return nullptr;
}

bool OnGpus(const std::vector<SlotPlan>& plans) {
  return plans.front().slot.device_kind() == "gpu";
}

std::vector<GpuInfo> FindGpus(Nvml* nvml, const Capabilities& capabilities) {
  if (nvml == nullptr) return {};
  const char* visible = std::getenv("CUDA_VISIBLE_DEVICES");
  absl::StatusOr<std::vector<GpuInfo>> gpus =
      VisibleGpus(*nvml, visible == nullptr ? std::nullopt : std::optional<std::string>(visible));
  if (!gpus.ok()) {
    spdlog::warn("no GPUs: {}", std::string(gpus.status().message()));
    return {};
  }
  if (!gpus->empty() && !capabilities.cuda) {
    spdlog::warn("this host has {} GPUs, but its trainer is built for the CPU only; using the CPU",
                 gpus->size());
    return {};
  }
  return *std::move(gpus);
}

WorkerIdentity MakeIdentity(const AgentOptions& options, const WorkDir& work_dir,
                            const Capabilities& capabilities, const std::vector<SlotPlan>& plans) {
  WorkerIdentity identity = {.worker_id = work_dir.worker_id(),
                             .name = options.name,
                             .host = HostName(),
                             .version = PELAB_VERSION,
                             .capabilities_json = capabilities.json,
                             .slots = {}};
  if (identity.name.empty()) identity.name = identity.host;
  for (const SlotPlan& plan : plans) identity.slots.push_back(plan.slot);
  return identity;
}

// Null if trainers need no MPS of this worker's own (no two share a GPU, or they find the host's
// MPS by themselves), or if this host cannot run it.
std::unique_ptr<Mps> StartMps(const AgentOptions& options, const WorkDir& work_dir,
                              const std::vector<SlotPlan>& plans) {
  if (!options.mps || !OnGpus(plans) || options.slots.slots_per_device < 2) return nullptr;
  const std::optional<std::string> program = MpsProgram();
  if (!program.has_value()) return nullptr;
  absl::StatusOr<std::unique_ptr<Mps>> mps =
      Mps::Start(*program, MpsDirectory(work_dir.path(), work_dir.worker_id()));
  if (mps.ok()) {
    spdlog::info("trainers share their GPUs through MPS");
    return *std::move(mps);
  }
  spdlog::warn("MPS does not start, so that trainers take turns on their GPUs: {}",
               std::string{mps.status().message()});
  return nullptr;
}

// The limits, with the time that Slurm leaves.
absl::StatusOr<RetirementLimits> LimitsOf(const AgentOptions& options) {
  RetirementLimits limits = options.retirement;
  if (!options.slurm_time_limit) return limits;
  absl::StatusOr<absl::Duration> left = SlurmTimeLeft();
  if (!left.ok()) return Annotate(left.status(), "--time-limit slurm");
  limits.time_limit = *left;
  return limits;
}

void AddTimeLimit(const Retirement& retirement, const Clock& clock, WorkerIdentity* identity) {
  const absl::Duration left = retirement.end() - clock.Monotonic();
  if (left == absl::InfiniteDuration()) return;
  identity->available_until_ms = absl::ToUnixMillis(clock.Wall() + left);
  identity->margin_ms = static_cast<std::uint32_t>(absl::ToInt64Milliseconds(retirement.margin()));
}

void LogRetirement(v1::Goodbye::Reason reason, const RetirementLimits& limits) {
  if (reason == v1::Goodbye::IDLE) {
    spdlog::info("no job for {}: stopping", absl::FormatDuration(limits.idle_exit));
  } else {
    spdlog::info("the time limit is near: giving the jobs back and stopping");
  }
}

void WarnIfFailed(const absl::Status& status) {
  if (!status.ok()) spdlog::warn("{}", std::string(status.message()));
}

// Tells the service manager that the daemon is alive, often enough. It has no thread of its own:
// the session's thread calls it, because it is that thread that must not hang.
class SignsOfLife {
 public:
  explicit SignsOfLife(const ServiceManager& manager) : manager_(manager) {}

  // Gives a sign if it is time. Returns when to call this again at the latest.
  absl::Duration Tend(absl::Duration now) {
    if (manager_.patience() == absl::InfiniteDuration()) return absl::InfiniteDuration();
    if (now >= next_) {
      WarnIfFailed(manager_.Alive());
      next_ = now + manager_.patience() / 3;
    }
    return next_;
  }

 private:
  const ServiceManager manager_;
  absl::Duration next_ = -absl::InfiniteDuration();
};

// Null if metrics are not asked for.
absl::StatusOr<std::unique_ptr<MetricsServer>> ServeMetrics(const AgentOptions& options,
                                                            const WorkerIdentity& identity,
                                                            const std::vector<SlotPlan>& plans,
                                                            const GpuFaults* faults) {
  if (!options.metrics) return nullptr;
  const auto metrics = std::make_shared<WorkerMetrics>(
      identity.name, options.work_dir, OnGpus(plans) ? FindNvml() : nullptr, plans, faults);
  PELAB_ASSIGN_OR_RETURN(
      auto server, MetricsServer::Start(*options.metrics, [metrics] { return metrics->Text(); }));
  spdlog::info("metrics on {}", server->url());
  return server;
}

// Null if the energy of GPUs cannot be read.
std::unique_ptr<EnergyMeter> MeterEnergy(const std::vector<SlotPlan>& plans) {
  const std::shared_ptr<Nvml> nvml = OnGpus(plans) ? FindNvml() : nullptr;
  if (nvml == nullptr) return nullptr;
  return std::make_unique<EnergyMeter>([nvml](const std::string& uuid) -> std::optional<double> {
    const absl::StatusOr<GpuLoad> load = nvml->Load(uuid);
    return load.ok() ? load->energy_joules : std::nullopt;
  });
}

// A script around the trainer, such as one that runs a profiler, is meant for every job.
bool IsScript(const std::string& program) {
  std::ifstream file(program, std::ios::binary);
  char begin[2] = {};
  return file.read(begin, sizeof begin) && begin[0] == '#' && begin[1] == '!';
}

// Null if trainers should not be preloaded.
std::unique_ptr<PreloadedTrainer> MakePreloaded(const AgentOptions& options,
                                                const std::string& trainer,
                                                const WorkDir& work_dir) {
  if (!options.preload || IsScript(trainer)) return nullptr;
  PreloadedTrainer::Settings settings;
  settings.trainer = trainer;
  settings.environment = {{"OMP_NUM_THREADS", absl::StrCat(options.slots.threads_per_slot)}};
  settings.trainer_id = MakeTrainerId(work_dir.worker_id());
  return std::make_unique<PreloadedTrainer>(std::move(settings));
}

void LogStart(const AgentOptions& options, const WorkerIdentity& identity) {
  spdlog::info("worker {} ({}) on {}: {} slots ({}), coordinator {}, work directory {}",
               identity.name, identity.worker_id, identity.host, identity.slots.size(),
               identity.slots[0].device_kind(), options.server.ToString(), options.work_dir);
}

}  // namespace

absl::Status RunAgent(const AgentOptions& options, const ServiceManager& manager,
                      ShutdownSignal& shutdown) {
  const SystemClock& clock = SystemClock::Instance();
  PELAB_ASSIGN_OR_RETURN(const RetirementLimits limits, LimitsOf(options));
  Retirement retirement(limits, clock.Monotonic());
  const absl::Duration farewell_upload =
      options.checkpoint_upload == absl::ZeroDuration() ? absl::ZeroDuration() : kFarewellUpload;
  const absl::Duration patience = kFarewellPatience + farewell_upload;
  const LastResort last_resort(&shutdown, patience);
  PELAB_ASSIGN_OR_RETURN(const std::unique_ptr<FleetClient> client,
                         MakeFleetClient(options.server, options.security));
  PELAB_ASSIGN_OR_RETURN(const std::string trainer, FindTrainer(options.trainer));
  PELAB_ASSIGN_OR_RETURN(const WorkDir work_dir, WorkDir::Open(options.work_dir));
  // The work directory is locked: no other daemon of this worker is running.
  if (const std::size_t strays = KillStraysOfWorker(work_dir.worker_id(), kStraysPatience);
      strays > 0) {
    spdlog::warn("ended {} processes that trainers of an earlier daemon had left behind", strays);
  }
  if (const absl::Status status = AdoptOrphans(); !status.ok()) {
    spdlog::warn("{}", std::string(status.message()));
  }
  std::unique_ptr<PreloadedTrainer> preloaded = MakePreloaded(options, trainer, work_dir);
  PELAB_ASSIGN_OR_RETURN(Capabilities capabilities, ReadCapabilities(trainer, preloaded.get()));
  if (!capabilities.preload) preloaded.reset();
  if (!options.own_encodings) capabilities = WithoutOwnEncodings(std::move(capabilities));
  std::unique_ptr<Nvml> nvml = FindNvml();
  const std::vector<SlotPlan> plans = PlanSlots(FindGpus(nvml.get(), capabilities), options.slots,
                                                UsableCores(), HostMemoryBytes());
  WorkerIdentity identity = MakeIdentity(options, work_dir, capabilities, plans);
  AddTimeLimit(retirement, clock, &identity);
  // An allocation of pelab-scale has a span; lines about no attempt belong to it.
  const TraceContext outer = trace::OuterSpan().value_or(TraceContext());
  SetLogIdsOfProcess(
      {.trace_id = outer.trace_id, .span_id = outer.span_id, .worker_id = identity.worker_id});
  LogStart(options, identity);
  const GpuFaults faults(OnGpus(plans) ? FindNvml() : nullptr, plans);
  PELAB_ASSIGN_OR_RETURN(const std::unique_ptr<MetricsServer> metrics,
                         ServeMetrics(options, identity, plans, &faults));

  const std::unique_ptr<EnergyMeter> energy = MeterEnergy(plans);
  const std::unique_ptr<Mps> mps = StartMps(options, work_dir, plans);  // outlives every trainer
  SpoolQuota quota(options.spool_quota_bytes);
  Reservations reservations;
  // Attempts notify the runner. The runner needs the attempts, so it is made after them.
  SessionRunner* runner_for_notify = nullptr;
  AttemptContext context;
  context.work_dir = &work_dir;
  context.quota = &quota;
  context.reservations = &reservations;
  StoreTransfer store(options.artifact_store, client.get());
  context.artifacts =
      options.artifact_store.empty() ? static_cast<ArtifactTransfer*>(client.get()) : &store;
  FileCache files(absl::StrCat(work_dir.path(), "/files"));
  files.RemoveOld();
  context.files = &files;
  context.own_encodings = options.own_encodings;
  context.checkpoint_every = options.checkpoint_every;
  context.checkpoint_upload = options.checkpoint_upload;
  context.farewell_upload = farewell_upload;
  context.attempt_timeout = options.attempt_timeout;
  context.clock = &clock;
  std::unique_ptr<trace::SpanFile> spans;
  if (!options.trace_file.empty()) {
    PELAB_ASSIGN_OR_RETURN(
        spans, trace::SpanFile::Open(options.trace_file, "pelab-worker", identity.worker_id));
  }
  context.spans = spans.get();
  context.energy = energy.get();
  context.trainer = trainer;
  context.environment = capabilities.environment;
  if (mps != nullptr) context.environment.push_back(mps->Variable());
  context.threads = options.slots.threads_per_slot;
  context.preloaded = preloaded.get();
  context.micro_batch = options.micro_batch;
  context.notify = [&runner_for_notify] { runner_for_notify->Notify(); };
  PELAB_ASSIGN_OR_RETURN(std::unique_ptr<Supervisor> supervisor,
                         Supervisor::Create(context, plans));
  DeviceLoads loads(std::move(nvml), plans);
  Session session(identity, supervisor.get(), &clock, [&](v1::Heartbeat& heartbeat) {
    for (v1::DeviceLoad& load : loads.Sample()) *heartbeat.add_loads() = std::move(load);
    AddErrors(faults, heartbeat);
  });
  SessionRunner runner(client.get(), &session, &clock, options.server.ToString());
  runner_for_notify = &runner;

  supervisor->Recover();
  const auto begin_shutdown = [&](v1::Goodbye::Reason reason) {
    runner.BeginShutdown(
        reason, [&] { supervisor->Shutdown(kTrainerGrace); },
        [&] { return supervisor->AllEnded(); }, patience);
  };
  shutdown.OnRequest([&](absl::string_view reason, int count) {
    if (count == 1) {
      spdlog::info("{}: stopping", std::string(reason));
      WarnIfFailed(manager.Stopping(absl::StrCat("stopping: ", reason)));
    }
    begin_shutdown(v1::Goodbye::STOPPED);
  });
  SignsOfLife signs_of_life(manager);
  bool fit = true;
  runner.SetTend([&] {
    if (const std::string broken = faults.Broken(); fit && !broken.empty()) {
      spdlog::error("{}: giving the jobs back, and taking no more", broken);
      session.SetUnfit(broken);
      fit = false;
    }
    const absl::Duration next_sign = signs_of_life.Tend(clock.Monotonic());
    const bool busy = !supervisor->Idle() || !supervisor->Held().empty();
    const auto reason = retirement.Look(clock.Monotonic(), busy, supervisor->LongestEpoch());
    if (reason == v1::Goodbye::REASON_UNSPECIFIED) {
      return std::min(retirement.NextLook(), next_sign);
    }
    LogRetirement(reason, limits);
    WarnIfFailed(manager.Stopping("no job for long, or the time limit is near"));
    begin_shutdown(reason);
    return absl::InfiniteDuration();
  });
  WarnIfFailed(manager.Ready(absl::StrCat("working for ", options.server.ToString())));
  const absl::Status status = runner.Run();
  shutdown.OnRequest(nullptr);
  supervisor.reset();  // its attempts notify the runner until they have ended
  if (!status.ok())
    return Annotate(status, absl::StrCat("the coordinator at ", options.server.ToString(),
                                         " refuses this worker"));
  spdlog::info("stopped");
  return absl::OkStatus();
}

}  // namespace pelab::agent
