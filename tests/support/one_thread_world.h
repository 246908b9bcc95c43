// A clock, an executor and a journal over a store, all in one thread: nothing happens until the
// test asks for it.
#pragma once

#include <algorithm>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "core/base/clock.h"
#include "server/sched/executor.h"
#include "server/store/journal.h"
#include "server/store/store.h"

namespace pelab::sched {

// For one thread.
class World : public Clock, public Executor, public store::Journal {
 public:
  explicit World(const std::string& path = ":memory:") : store(*store::Store::Open(path)) {}

  absl::Duration Monotonic() const override { return now; }
  absl::Time Wall() const override { return absl::FromUnixSeconds(1'000'000) + now + set_by; }
  void Post(std::function<void()> step) override { steps.push_back(std::move(step)); }
  void PostAt(absl::Duration when, std::function<void()> step) override {
    timed.emplace(when, std::move(step));
  }
  absl::Status Append(std::vector<store::Write> writes, Done done, Urgency) override {
    commits.push_back({std::move(writes), std::move(done)});
    return absl::OkStatus();
  }

  // Runs everything that is due now.
  void Settle() {
    while (!steps.empty() || (!commits.empty() && !disk_hangs)) {
      if (!steps.empty()) {
        auto step = std::move(steps.front());
        steps.pop_front();
        step();
        continue;
      }
      auto [writes, done] = std::move(commits.front());
      commits.pop_front();
      if (disk_full != refused && on_change) on_change(!disk_full);
      refused = disk_full;
      if (disk_full) {
        done(absl::ResourceExhaustedError("full"));
      } else {
        done(store->Apply(writes));
      }
    }
  }
  void Advance(absl::Duration by) {
    const absl::Duration end = now + by;
    while (!timed.empty() && timed.begin()->first <= end) {
      now = std::max(now, timed.begin()->first);
      Post(std::move(timed.begin()->second));
      timed.erase(timed.begin());
      Settle();
    }
    now = end;
    Settle();
  }

  // Time passes and nothing runs, as while the process is stopped.
  void StandStill(absl::Duration time) { now += time; }

  absl::Duration now = absl::Hours(1);
  absl::Duration set_by = absl::ZeroDuration();  // how far somebody has set the wall clock
  std::unique_ptr<store::Store> store;
  std::deque<std::function<void()>> steps;
  std::multimap<absl::Duration, std::function<void()>> timed;
  std::deque<std::pair<std::vector<store::Write>, Done>> commits;
  bool disk_full = false;
  bool refused = false;                 // the last commit was refused
  std::function<void(bool)> on_change;  // like the writer's on_change
  bool disk_hangs = false;              // commits wait while true
};

}  // namespace pelab::sched
