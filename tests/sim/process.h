// One process of a simulated coordinator. Internal to Coordinator's sources.
#pragma once

#include <algorithm>
#include <deque>
#include <functional>
#include <memory>
#include <utility>

#include "tests/sim/coordinator.h"

namespace pelab::sim {

// The scheduler's thread: runs steps in order, a little later than they were posted. As in
// sched::Strand, a lazy step waits for the next one that is not, for 50 ms at most.
class SimExecutor final : public sched::Executor {
 public:
  SimExecutor(World& world, std::shared_ptr<const bool> alive)
      : world_(world), alive_(std::move(alive)) {}

  void Post(std::function<void()> step) override {
    steps_.push_back(std::move(step));
    RunAllAt(world_.Monotonic() + absl::Microseconds(world_.Draw(1000)));
  }
  void PostLazily(std::function<void()> step) override {
    steps_.push_back(std::move(step));
    RunAllAt(world_.Monotonic() + absl::Microseconds(world_.Draw(50'000)));
  }
  void PostAt(absl::Duration when, std::function<void()> step) override {
    world_.At(when, [this, alive = alive_, step = std::move(step)] {
      if (*alive) Post(step);
    });
  }
  void Stall(absl::Duration time) { free_ = std::max(free_, world_.Monotonic() + time); }

 private:
  // Runs the steps that are there then, but not before the thread is free.
  void RunAllAt(absl::Duration when) {
    world_.At(std::max(when, free_), [this, alive = alive_] {
      if (!*alive || steps_.empty()) return;
      if (world_.Monotonic() < free_) return RunAllAt(free_);
      for (std::deque<std::function<void()>> steps = std::exchange(steps_, {});
           *alive && !steps.empty(); steps.pop_front()) {
        steps.front()();
      }
    });
  }

  World& world_;
  std::shared_ptr<const bool> alive_;
  std::deque<std::function<void()>> steps_;
  absl::Duration free_;  // when the thread is not stalled any more
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
