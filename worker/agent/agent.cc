#include "worker/agent/agent.h"

#include <spdlog/spdlog.h>
#include <unistd.h>

#include <climits>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/clock.h"
#include "core/base/mutex.h"
#include "core/base/status.h"
#include "core/base/utf8.h"
#include "worker/agent/capabilities.h"
#include "worker/agent/devices.h"
#include "worker/agent/file_cache.h"
#include "worker/agent/fleet_client.h"
#include "worker/agent/loads.h"
#include "worker/agent/mps.h"
#include "worker/agent/nvml.h"
#include "worker/agent/session_runner.h"
#include "worker/agent/store_transfer.h"
#include "worker/agent/strays.h"
#include "worker/agent/supervisor.h"
#include "worker/agent/work_dir.h"

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
  const bool on_gpus = plans.front().slot.device_kind() == "gpu";
  if (!options.mps || !on_gpus || options.slots.slots_per_device < 2) return nullptr;
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

void LogStart(const AgentOptions& options, const WorkerIdentity& identity) {
  spdlog::info("worker {} ({}) on {}: {} slots ({}), coordinator {}, work directory {}",
               identity.name, identity.worker_id, identity.host, identity.slots.size(),
               identity.slots[0].device_kind(), options.server.ToString(), options.work_dir);
}

}  // namespace

absl::Status RunAgent(const AgentOptions& options, ShutdownSignal& shutdown) {
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
  PELAB_ASSIGN_OR_RETURN(Capabilities capabilities, ReadCapabilities(trainer));
  if (!options.own_encodings) capabilities = WithoutOwnEncodings(std::move(capabilities));
  std::unique_ptr<Nvml> nvml = FindNvml();
  const std::vector<SlotPlan> plans = PlanSlots(FindGpus(nvml.get(), capabilities), options.slots,
                                                UsableCores(), HostMemoryBytes());
  if (const absl::Status status = AdoptOrphans(); !status.ok()) {
    spdlog::warn("{}", std::string(status.message()));
  }
  const SystemClock& clock = SystemClock::Instance();
  const WorkerIdentity identity = MakeIdentity(options, work_dir, capabilities, plans);
  LogStart(options, identity);

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
  context.trainer = trainer;
  context.environment = capabilities.environment;
  if (mps != nullptr) context.environment.push_back(mps->Variable());
  context.threads = options.slots.threads_per_slot;
  context.micro_batch = options.micro_batch;
  context.notify = [&runner_for_notify] { runner_for_notify->Notify(); };
  PELAB_ASSIGN_OR_RETURN(std::unique_ptr<Supervisor> supervisor,
                         Supervisor::Create(context, plans));
  DeviceLoads loads(std::move(nvml), plans);
  Session session(identity, supervisor.get(), &clock, [&loads] { return loads.Sample(); });
  SessionRunner runner(client.get(), &session, &clock, options.server.ToString());
  runner_for_notify = &runner;

  supervisor->Recover();
  shutdown.OnRequest([&](absl::string_view reason, int count) {
    if (count == 1) spdlog::info("{}: stopping", std::string(reason));
    runner.BeginShutdown([&] { supervisor->Shutdown(kTrainerGrace); },
                         [&] { return supervisor->AllEnded(); }, patience);
  });
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
