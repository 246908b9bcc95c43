#include "client/embedded/runner.h"

#include <poll.h>
#include <unistd.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

#include "absl/time/clock.h"
#include "client/command/watch.h"
#include "client/connect.h"
#include "client/embedded/fleet.h"
#include "client/report/run_report.h"
#include "client/source/remote.h"
#include "core/base/ids.h"
#include "core/base/shutdown.h"
#include "core/base/status.h"
#include "core/rpc/lock_file.h"
#include "core/views/text.h"

namespace pelab::client {
namespace {

constexpr absl::Duration kStartTimeout = absl::Seconds(30);
constexpr absl::Duration kConnectStep = absl::Milliseconds(250);
constexpr absl::Duration kPoll = absl::Milliseconds(50);
// Together below the 5 s in which Ctrl-C must have ended everything.
constexpr absl::Duration kWorkerGrace = absl::Seconds(3);
constexpr absl::Duration kServerGrace = absl::Milliseconds(1500);
constexpr int kMaxJoins = 20;

// Calls `on_end` once a descriptor has become readable; ends when it goes.
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

// One run of the command.
class Runner {
 public:
  Runner(const Context& context, const Document& document, const RunOptions& options)
      : context_(context), document_(document), options_(options), token_(RandomUuid()) {
    shutdown_.OnRequest([this](auto, int count) { OnInterrupt(count); });
  }

  ~Runner() {
    const std::lock_guard lock(mutex_);
    fleet_for_kill_ = nullptr;
  }

  absl::StatusOr<int> Run() {
    for (int joins = 0;; ++joins) {
      absl::StatusOr<int> result = Once();
      // A coordinator that was only joined may end with the command that brought it: then this one
      // takes over. The same client token makes submitting again harmless.
      const bool lost = result.status().code() == absl::StatusCode::kUnavailable && !fleet_;
      if (interrupted()) return Interrupted();
      if (!lost || joins == kMaxJoins) return result;
    }
  }

 private:
  bool interrupted() const { return shutdown_.requested(); }

  void OnInterrupt(int count) {
    if (count >= 2) {
      const std::lock_guard lock(mutex_);
      if (fleet_for_kill_ != nullptr) fleet_for_kill_->Kill();
      context_.err("\npelab: killed\n");
      _exit(kExitInterrupted);
    }
    canceller_.Cancel();
  }

  void Hold(std::unique_ptr<Fleet> fleet) {
    const std::lock_guard lock(mutex_);
    fleet_ = std::move(fleet);
    fleet_for_kill_ = fleet_.get();
  }

  absl::StatusOr<int> Once() {
    PELAB_ASSIGN_OR_RETURN(coordinator_, Attach());
    PELAB_ASSIGN_OR_RETURN(const v1::Sweep submitted, Submit());
    if (Pending(submitted) > 0) {
      if (fleet_ && !fleet_->has_worker()) PELAB_RETURN_IF_ERROR(fleet_->StartWorker());
    }
    PELAB_ASSIGN_OR_RETURN(const v1::Sweep end, Watch(submitted));
    if (end.state() == v1::SWEEP_STATE_EXPANDING || Pending(end) > 0) {
      return absl::InternalError(
          "the coordinator stopped reporting before every job had ended; run it again");
    }
    PELAB_RETURN_IF_ERROR(ReportRun(context_, *coordinator_, end));
    if (fleet_) fleet_->Stop(kWorkerGrace, kServerGrace);
    return ExitCodeOf(end);
  }

  static std::uint64_t Pending(const v1::Sweep& sweep) {
    return sweep.jobs().queued() + sweep.jobs().assigned() + sweep.jobs().running();
  }

  // The coordinator of a command that already serves the database, else an own one.
  absl::StatusOr<std::unique_ptr<Coordinator>> Attach() {
    const absl::Time give_up = absl::Now() + kStartTimeout;
    while (!interrupted()) {
      PELAB_ASSIGN_OR_RETURN(const auto address, rpc::ReadLiveAddress(context_.options.database));
      if (!address) return StartOwn();
      if (!address->empty()) {
        auto joined = ConnectTo(*address, context_.options.security, absl::Seconds(2));
        if (joined.ok()) {
          context_.err(Concat("pelab: ", context_.options.database, " is served at ", *address,
                              " already; joining it\n"));
          return joined;
        }
      }
      if (absl::Now() > give_up) {
        return absl::UnavailableError(Concat("no coordinator: another process holds ",
                                             context_.options.database, " but does not answer"));
      }
      absl::SleepFor(kPoll);
    }
    return absl::CancelledError("stopped");
  }

  absl::StatusOr<std::unique_ptr<Coordinator>> StartOwn() {
    FleetOptions options{.database = context_.options.database,
                         .cpu_slots = options_.cpu_slots,
                         .slots_per_device = options_.slots_per_device,
                         .threads_per_slot = options_.threads_per_slot};
    PELAB_ASSIGN_OR_RETURN(auto fleet, Fleet::StartServer(options));
    Hold(std::move(fleet));
    const absl::Time give_up = absl::Now() + kStartTimeout;
    while (!interrupted()) {
      auto connected = ConnectTo(fleet_->address(), {}, kConnectStep, rpc::OnRefusal::kWait);
      if (connected.ok()) return connected;
      PELAB_RETURN_IF_ERROR(fleet_->CheckServer());
      if (absl::Now() > give_up) {
        return absl::InternalError(Concat("pelab-server did not answer within ",
                                          absl::ToInt64Seconds(kStartTimeout), " s; see ",
                                          options.ServerLog()));
      }
    }
    return absl::CancelledError("stopped");
  }

  // Submits and waits until the sweep is expanded, so that its counts are known.
  absl::StatusOr<v1::Sweep> Submit() {
    PELAB_ASSIGN_OR_RETURN(const auto response,
                           coordinator_->Submit(SubmitRequestOf(
                               document_, token_, options_.priority, options_.fresh)));
    for (;;) {
      PELAB_ASSIGN_OR_RETURN(v1::Sweep sweep, coordinator_->Sweep(Concat(response.sweep_id())));
      if (sweep.state() != v1::SWEEP_STATE_EXPANDING || interrupted()) {
        sweep_ = sweep;
        if (!announced_ && context_.output() == Output::kTable) {
          context_.out(Concat("sweep ", sweep.sweep_id(), " ", sweep.name(), ": ",
                              CountsText(sweep.counts()), "\n"));
        }
        announced_ = true;
        return sweep;
      }
      absl::SleepFor(kPoll);
    }
  }

  absl::StatusOr<v1::Sweep> Watch(const v1::Sweep& submitted) {
    if (Pending(submitted) == 0) return submitted;
    absl::StatusOr<v1::Sweep> end;
    {
      std::vector<int> processes;
      if (fleet_) processes = {fleet_->server_pidfd(), fleet_->worker_pidfd()};
      // A dead worker sends no updates: notice it by its process.
      EndWatcher watcher(processes, [this] { canceller_.Cancel(); });
      end = WatchToEnd(context_, *coordinator_, Concat(submitted.sweep_id()), &canceller_,
                       /*json_lines=*/false);
    }
    if (!end.ok() && fleet_ && !interrupted()) {
      PELAB_RETURN_IF_ERROR(fleet_->CheckServer());
      PELAB_RETURN_IF_ERROR(fleet_->CheckWorker());
    }
    return end;
  }

  absl::StatusOr<int> Interrupted() {
    const bool own = fleet_ != nullptr;
    if (own) {
      context_.err("\npelab: stopping (Ctrl-C again to kill at once)\n");
      fleet_->Stop(kWorkerGrace, kServerGrace);
    }
    context_.err(own ? Concat("pelab: interrupted; what is done is stored in ",
                              context_.options.database, "; go on with: pelab run ",
                              document_.file_name, " --db ", context_.options.database, "\n")
                     : Concat("\npelab: left; the sweep goes on where it was joined; stop it with: "
                              "pelab cancel ",
                              sweep_.sweep_id(), " --db ", context_.options.database, "\n"));
    return kExitInterrupted;
  }

  const Context& context_;
  const Document& document_;
  const RunOptions& options_;
  const std::string token_;
  Canceller canceller_;
  std::mutex mutex_;
  Fleet* fleet_for_kill_ = nullptr;
  ShutdownSignal shutdown_;  // before anything that starts threads; its callback uses what is above
  std::unique_ptr<Fleet> fleet_;
  std::unique_ptr<Coordinator> coordinator_;
  v1::Sweep sweep_;
  bool announced_ = false;
};

}  // namespace

absl::StatusOr<int> RunEmbedded(const Context& context, const Document& document,
                                const RunOptions& options) {
  return Runner(context, document, options).Run();
}

}  // namespace pelab::client
