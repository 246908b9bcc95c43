#include "client/embedded/session.h"

#include <poll.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <thread>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "client/limits.h"
#include "client/source/remote.h"
#include "core/base/status.h"
#include "core/base/strings.h"
#include "core/render/text.h"
#include "core/rpc/lock_file.h"

namespace pelab::client {
namespace {

// Calls `on_end` from its own thread once one of the descriptors is readable. The destructor ends
// the thread.
class EndWatcher {
 public:
  EndWatcher(std::vector<int> fds, std::function<void()> on_end) {
    auto pipe = MakePipe();
    if (!pipe.ok()) return;
    pipe_ = *std::move(pipe);
    thread_ = std::thread([this, fds = std::move(fds), on_end = std::move(on_end)] {
      std::vector<pollfd> polled = {{pipe_.read.get(), POLLIN, 0}};
      for (const int fd : fds) polled.push_back({fd, POLLIN, 0});
      while (poll(polled.data(), polled.size(), -1) < 0) {
      }
      if (polled[0].revents == 0) on_end();
    });
  }
  ~EndWatcher() {
    pipe_.write.Reset();
    if (thread_.joinable()) thread_.join();
  }

 private:
  Pipe pipe_;
  std::thread thread_;
};

}  // namespace

void AddWorkerFlags(CLI::App* app, WorkerOptions& options) {
  const auto slots = [&](const char* flag, std::optional<int>& value, const char* help) {
    app->add_option(flag, value, help)->check(CLI::Range(1, 1024))->type_name("N");
  };
  slots("--cpu-slots", options.cpu_slots,
        "jobs at once where there is no GPU [default: the worker's choice]");
  slots("--slots-per-device", options.slots_per_device, "jobs at once on each GPU [default: 1]");
  slots("--threads-per-slot", options.threads_per_slot,
        "threads of each trainer [default: the worker's choice]");
}

EmbeddedSession::EmbeddedSession(const Context& context, const WorkerOptions& worker)
    : context_(context), worker_(worker) {
  shutdown_.OnRequest([this](auto, int count) { OnInterrupt(count); });
}

EmbeddedSession::~EmbeddedSession() {
  const std::lock_guard lock(mutex_);
  fleet_for_kill_ = nullptr;
}

absl::StatusOr<int> EmbeddedSession::Run() {
  for (int joins = 0;; ++joins) {
    absl::StatusOr<int> result = kExitOk;
    {
      absl::StatusOr<std::unique_ptr<Coordinator>> coordinator = Attach();
      result = coordinator.ok() ? Work(**coordinator) : coordinator.status();
    }
    // A joined coordinator may end together with the command that started it. Then this command
    // joins the next coordinator or starts its own. The coordinator of this command may only have
    // stood still for too long, on a machine that has too much to do or that slept.
    const bool lost = result.status().code() == absl::StatusCode::kUnavailable;
    if (interrupted()) return Interrupted();
    if (!lost || joins == limits::kJoins) return result;
    if (!fleet_) continue;
    PELAB_RETURN_IF_ERROR(fleet_->CheckServer());
    context_.err("pelab: the coordinator did not answer; connecting to it again\n");
  }
}

void EmbeddedSession::OnInterrupt(int count) {
  if (count >= 2) {
    const std::lock_guard lock(mutex_);
    if (fleet_for_kill_ != nullptr) fleet_for_kill_->Kill();
    context_.err("\npelab: killed\n");
    _exit(kExitInterrupted);
  }
  canceller_.Cancel();
}

void EmbeddedSession::Hold(std::unique_ptr<Fleet> fleet) {
  const std::lock_guard lock(mutex_);
  fleet_ = std::move(fleet);
  fleet_for_kill_ = fleet_.get();
}

// Joins the coordinator that holds the database, or starts one. If this command has started one
// already, connects to it again.
absl::StatusOr<std::unique_ptr<Coordinator>> EmbeddedSession::Attach() {
  if (fleet_) return ConnectToOwn(limits::kStandstill);
  const absl::Time give_up = absl::Now() + limits::kStart;
  while (!interrupted()) {
    PELAB_ASSIGN_OR_RETURN(const auto address, rpc::ReadLiveAddress(context_.options.database));
    if (!address) return StartOwn();
    if (!address->empty()) {
      auto joined = ConnectTo(*address, context_.options.security, limits::kConnectBeside);
      if (joined.ok()) {
        context_.err(Concat("pelab: ", context_.options.database, " is served at ",
                            render::Escape(*address), " already; joining it\n"));
        return joined;
      }
    }
    if (absl::Now() > give_up) {
      return absl::UnavailableError(Concat("no coordinator: another process holds ",
                                           context_.options.database, " but does not answer"));
    }
    absl::SleepFor(limits::kStartPoll);
  }
  return absl::CancelledError("stopped");
}

absl::StatusOr<std::unique_ptr<Coordinator>> EmbeddedSession::StartOwn() {
  FleetOptions options{.database = context_.options.database,
                       .cpu_slots = worker_.cpu_slots,
                       .slots_per_device = worker_.slots_per_device,
                       .threads_per_slot = worker_.threads_per_slot};
  PELAB_ASSIGN_OR_RETURN(auto fleet, Fleet::StartServer(options));
  Hold(std::move(fleet));
  return ConnectToOwn(limits::kStart);
}

absl::StatusOr<std::unique_ptr<Coordinator>> EmbeddedSession::ConnectToOwn(
    absl::Duration patience) {
  const absl::Time give_up = absl::Now() + patience;
  while (!interrupted()) {
    auto connected = ConnectTo(fleet_->address(), {}, limits::kStartStep, rpc::OnRefusal::kWait);
    if (connected.ok()) return connected;
    PELAB_RETURN_IF_ERROR(fleet_->CheckServer());
    if (absl::Now() > give_up) {
      return absl::InternalError(
          Concat("pelab-server did not answer within ", absl::ToInt64Seconds(patience), " s; see ",
                 FleetOptions{.database = context_.options.database}.ServerLog()));
    }
  }
  return absl::CancelledError("stopped");
}

absl::Status EmbeddedSession::EnsureWorker() {
  if (!fleet_ || fleet_->has_worker()) return absl::OkStatus();
  return fleet_->StartWorker();
}

absl::Status EmbeddedSession::Follow(const std::function<absl::Status(Canceller&)>& something) {
  absl::Status end;
  {
    std::vector<int> processes;
    if (fleet_) processes = {fleet_->server_pidfd(), fleet_->worker_pidfd()};
    // A dead worker sends no updates, so watch its process.
    EndWatcher watcher(processes, [this] { canceller_.Cancel(); });
    end = something(canceller_);
  }
  if (!end.ok() && fleet_ && !interrupted()) {
    PELAB_RETURN_IF_ERROR(fleet_->CheckServer());
    PELAB_RETURN_IF_ERROR(fleet_->CheckWorker());
  }
  return end;
}

void EmbeddedSession::Stop() {
  if (fleet_) fleet_->Stop(limits::kWorkerGrace, limits::kServerGrace);
}

int EmbeddedSession::Interrupted() {
  if (fleet_) {
    context_.err("\npelab: stopping (Ctrl-C again to kill at once)\n");
    Stop();
    context_.err(Concat("pelab: interrupted; what is done is stored in ", context_.options.database,
                        "; ", GoOnHint(), "\n"));
  } else {
    context_.err(Concat("\npelab: left; ", JoinedHint(), "\n"));
  }
  return kExitInterrupted;
}

}  // namespace pelab::client
