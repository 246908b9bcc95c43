// One process of a simulated coordinator. Internal to Coordinator's sources.
#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <utility>

#include "tests/sim/coordinator.h"

namespace pelab::sim {

// The scheduler's thread: runs steps in order, a little later than they were posted.
class SimExecutor final : public sched::Executor {
 public:
  SimExecutor(World& world, std::shared_ptr<const bool> alive)
      : world_(world), alive_(std::move(alive)) {}

  void Post(std::function<void()> step) override {
    last_ = std::max(last_, world_.Monotonic() + absl::Microseconds(world_.Draw(1000)));
    Run(last_, std::move(step));
  }
  void PostAt(absl::Duration when, std::function<void()> step) override {
    Run(std::max(when, last_), std::move(step));
  }
  void Stall(absl::Duration time) { last_ = std::max(last_, world_.Monotonic() + time); }

 private:
  void Run(absl::Duration when, std::function<void()> step) {
    world_.At(when, [alive = alive_, step = std::move(step)] {
      if (*alive) step();
    });
  }

  World& world_;
  std::shared_ptr<const bool> alive_;
  absl::Duration last_;
};

// Members in the order of construction; destroyed in reverse order.
struct Coordinator::Process {
  std::shared_ptr<bool> alive = std::make_shared<bool>(true);
  std::unique_ptr<store::Store> store;
  std::unique_ptr<db::Reader> reader;  // opened when it is first needed
  std::unique_ptr<SimExecutor> executor;
  std::unique_ptr<SimJournal> journal;
  std::unique_ptr<sched::Scheduler> scheduler;
  std::unique_ptr<service::FleetContext> context;
};

}  // namespace pelab::sim
