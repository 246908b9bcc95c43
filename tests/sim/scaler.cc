#include "tests/sim/scaler.h"

#include <memory>
#include <utility>
#include <vector>

#include "tests/sim/process.h"

namespace pelab::sim {
namespace {

constexpr absl::Duration kReportTimeout = absl::Seconds(15);
constexpr int kReportTries = 3;
constexpr char kWhyGone[] = "allocation 4711 is over: NODE_FAIL";

}  // namespace

void Coordinator::WorkerGone(const std::string& name, GoneAnswer answer) {
  if (!process_) return answer(absl::UnavailableError("no coordinator"));
  process_->executor->Post([=, this] {
    ledger_.SaidGone(name);
    const int ended = planted_.ignores_gone ? 0 : process_->scheduler->WorkerGone(name, kWhyGone);
    ledger_.CheckGone(name, ended);
    for (const sched::WorkerStatus& status : process_->scheduler->Workers()) {
      if (!status.connected || !ledger_.IsNamed(status.worker_id, name)) continue;
      world_.Violate(absl::StrCat("worker ", name, " is said to be gone and stays connected"));
    }
    world_.After(absl::Milliseconds(2), [alive = process_->alive, answer, ended] {
      if (*alive) answer(ended);
    });
  });
}

void Scaler::Report(const std::string& name, absl::Duration delay) {
  world_.After(delay, [=, this] { Try(name, kReportTries); });
  if (!dice_.Chance(0.3)) return;
  const absl::Duration later = dice_.Between(absl::ZeroDuration(), absl::Seconds(20));
  world_.After(delay + later, [=, this] { Try(name, 1); });
}

void Scaler::ReportNobody() {
  // An id is no name, and neither is the beginning of a name.
  static const auto& names = *new std::vector<std::string>{"pelab-gpu-4711", "worker", "worker-",
                                                           "worker-0.0",     "%",      "WORKER-0"};
  const std::string& name = dice_.OneOf(names);
  coordinator_.WorkerGone(name, [=, this](const absl::StatusOr<int>& ended) {
    if (!ended.ok() || *ended == 0) return;
    world_.Violate(
        absl::StrCat("worker ", name, " does not exist and has lost ", *ended, " attempts"));
  });
}

void Scaler::Try(const std::string& name, int tries) {
  if (calm_ || tries == 0) return;
  const auto over = std::make_shared<bool>(false);  // answered, or asked again
  const auto again = [=, this] {
    if (!std::exchange(*over, true)) Try(name, tries - 1);
  };
  world_.After(kReportTimeout, again);
  coordinator_.WorkerGone(name, [=, this](const absl::StatusOr<int>& ended) {
    if (!ended.ok()) return world_.After(absl::Seconds(1), again);
    *over = true;
  });
}

}  // namespace pelab::sim
