#include "worker/scale/run.h"

#include <algorithm>
#include <iostream>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/clock.h"
#include "core/base/log.h"
#include "core/base/status.h"
#include "core/base/utf8.h"
#include "core/queues/queues_file.h"
#include "core/trace/command_trace.h"
#include "core/trace/span_file.h"
#include "worker/scale/allocation_spans.h"
#include "worker/scale/coordinator_client.h"
#include "worker/scale/scaler.h"
#include "worker/scale/slurm_batch.h"

namespace pelab::scale {
namespace {

// Says the first of several equal errors, and when it is over.
class Trouble {
 public:
  explicit Trouble(const char* what) : what_(what) {}
  void Report(const absl::Status& status) {
    const std::string message(status.message());
    if (!status.ok() && message != last_) spdlog::warn("{}: {}", what_, message);
    if (status.ok() && !last_.empty()) spdlog::info("{}: answers again", what_);
    last_ = status.ok() ? "" : message;
  }

 private:
  const char* const what_;
  std::string last_;
};

void RunLoop(const ScaleOptions& options, Scaler& scaler, ShutdownSignal& shutdown) {
  const SystemClock& clock = SystemClock::Instance();
  Trouble queues("asking for the queues"), slurm("looking at the allocations");
  Trouble coordinator("asking for the jobs that wait");
  absl::Duration next_look = clock.Monotonic();
  do {
    const absl::Duration now = clock.Monotonic();
    queues.Report(scaler.Report());
    if (now >= next_look || scaler.wants_look()) {
      slurm.Report(scaler.Look(now));
      next_look = clock.Monotonic() + options.look;
    }
    coordinator.Report(scaler.Step(now));
  } while (!shutdown.WaitFor(options.interval));
  spdlog::info("{}: stopping; the workers go on", shutdown.reason());
}

void PrintAllocations(const Scaler& scaler) {
  for (const Scaler::QueueState& state : scaler.queues()) {
    std::cout << "queue " << state.queue.name << ": " << state.allocations.active() << " of "
              << state.queue.max_allocations << " allocations\n";
    for (const auto& [id, allocation] : state.allocations.all()) {
      std::cout << "  " << Escape(id) << "  " << NameOf(allocation.phase) << "  "
                << Escape(allocation.state) << "  " << Escape(allocation.reason) << "\n";
    }
  }
}

absl::Status PrintWishes(const Scaler& scaler, BatchSystem& batch) {
  std::map<std::string, int> planned;  // slots, by device: the queues before have their share
  for (const Scaler::QueueState& state : scaler.queues()) {
    int& before = planned[state.queue.device];
    PELAB_ASSIGN_OR_RETURN(const Scaler::Wish wish, scaler.WishOf(state, before));
    std::cout << "queue " << state.queue.name << ": " << wish.demand.waiting_jobs << " jobs wait, "
              << wish.demand.free_slots << " slots are free, " << wish.coming
              << " are coming; wants " << wish.wanted << " allocations, submits " << wish.now
              << " now\n";
    before += wish.now * state.queue.slots;
    if (!state.paused.empty()) std::cout << "  paused: " << Escape(state.paused) << "\n";
    const absl::StatusOr<std::string> says = batch.Test(state.queue);
    std::cout << "  Slurm: " << Escape(says.ok() ? *says : std::string(says.status().message()))
              << "\n";
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status Run(const ScaleOptions& options, ShutdownSignal& shutdown) {
  std::vector<Queue> own;
  if (!options.queues_file.empty()) {
    PELAB_ASSIGN_OR_RETURN(own, queues::ReadQueues(options.queues_file));
  }
  PELAB_ASSIGN_OR_RETURN(const auto batch, MakeSlurm(options.tag));
  std::unique_ptr<trace::SpanFile> file;
  if (!options.trace_file.empty()) {
    PELAB_ASSIGN_OR_RETURN(file, trace::SpanFile::Open(options.trace_file, "pelab-scale", ""));
  }
  PELAB_ASSIGN_OR_RETURN(const auto coordinator,
                         MakeCoordinator(options.server, options.security, file.get()));
  AllocationSpans spans(SystemClock::Instance(), file.get(), trace::OuterSpan());
  Scaler scaler = options.queues_file.empty() ? Scaler(batch.get(), coordinator.get(), &spans)
                                              : Scaler(own, batch.get(), coordinator.get(), &spans);
  if (options.command == Command::kRun) {
    RunLoop(options, scaler, shutdown);
    return absl::OkStatus();
  }
  PELAB_RETURN_IF_ERROR(scaler.Report());
  PELAB_RETURN_IF_ERROR(scaler.Look(SystemClock::Instance().Monotonic()));
  if (options.command == Command::kDryRun) return PrintWishes(scaler, *batch);
  PrintAllocations(scaler);
  return absl::OkStatus();
}

}  // namespace pelab::scale
