// A batch system and a coordinator for tests of the scaler, in memory.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/support/fake_clock.h"
#include "tests/support/status_matchers.h"
#include "worker/scale/scaler.h"

namespace pelab::scale {

class FakeBatch final : public BatchSystem {
 public:
  absl::StatusOr<std::map<std::string, std::vector<Sighting>>> Look(
      const std::vector<std::string>& queues) override {
    if (!away.empty()) return absl::UnavailableError(away);
    std::map<std::string, std::vector<Sighting>> found;
    for (const std::string& queue : queues) found[queue] = listed[queue];
    return found;
  }
  absl::StatusOr<std::string> Submit(const Queue& queue, const TraceContext& span) override {
    spans.push_back(span);
    if (!refuses.empty()) return absl::UnavailableError(refuses);
    const std::string id = absl::StrCat(++last);
    listed[queue.name].push_back({id, "PENDING", ""});
    return id;
  }
  absl::Status Cancel(const std::string& id) override {
    cancelled.push_back(id);
    return absl::OkStatus();
  }
  absl::StatusOr<std::string> Test(const Queue&) override { return std::string(); }

  void Set(const std::string& id, const std::string& state) {
    for (auto& [queue, sightings] : listed) {
      for (Sighting& one : sightings) {
        if (one.id == id) one.state = state;
      }
    }
  }

  std::map<std::string, std::vector<Sighting>> listed;
  std::vector<std::string> cancelled;
  std::vector<TraceContext> spans;  // of submissions
  std::string away, refuses;
  int last = 0;
};

class FakeCoordinator final : public Coordinator {
 public:
  absl::StatusOr<Demand> DemandFor(const Queue&) override {
    if (!away.empty()) return absl::UnavailableError(away);
    return demand;
  }
  absl::StatusOr<Workers> ListWorkers() override {
    if (!away.empty()) return absl::UnavailableError(away);
    return workers;
  }
  absl::StatusOr<std::vector<GivenQueue>> Report(const std::vector<QueueReport>& reports,
                                                 const std::optional<TraceContext>& span) override {
    if (!away.empty()) return absl::UnavailableError(away);
    report_span = span;
    reported.clear();
    for (const QueueReport& report : reports) {
      reported.push_back(absl::StrCat(report.queue, ": ", report.allocations->active()));
      for (GivenQueue& one : given) {
        if (one.queue.name == report.queue && one.paused.empty()) one.paused = report.pause;
      }
    }
    return given;
  }
  absl::StatusOr<int> WorkerGone(const std::string& worker, const std::string& why,
                                 const std::optional<TraceContext>& span) override {
    if (!refuses_gone.ok()) return refuses_gone;
    gone_span = span;
    gone.push_back(absl::StrCat(worker, ": ", why));
    return 1;
  }

  Demand demand;
  Workers workers;
  std::vector<GivenQueue> given;      // the queues that it has
  std::vector<std::string> reported;  // of the last report: "a: 2", for two allocations
  std::vector<std::string> gone;
  std::optional<TraceContext> report_span, gone_span;  // of the last call
  absl::Status refuses_gone;
  std::string away;
};

class ScalerTest : public testing::Test {
 protected:
  static Queue Named(const std::string& name, int most = 8, int waiting = 2, int slots = 1) {
    return {.name = name,
            .time_limit = absl::Hours(4),
            .max_allocations = most,
            .max_waiting = waiting,
            .slots = slots};
  }
  void Begin(std::vector<Queue> queues) {
    scaler_.emplace(std::move(queues), &batch_, &coordinator_, &spans_);
    ASSERT_THAT(scaler_->Look(now_), IsOk());
  }
  void Step() { ASSERT_THAT(scaler_->Step(now_), IsOk()); }
  void Look() { ASSERT_THAT(scaler_->Look(now_), IsOk()); }
  const Scaler::QueueState& First() { return scaler_->queues().front(); }
  // The allocation gets its node, and its worker connects.
  void Start(const std::string& id, const std::string& queue = "a") {
    batch_.Set(id, "RUNNING");
    coordinator_.workers[absl::StrCat("pelab-", queue, "-", id)] = true;
    Look();
  }

  FakeBatch batch_;
  FakeCoordinator coordinator_;
  absl::Duration now_ = absl::Hours(1);
  FakeClock clock_;
  AllocationSpans spans_{clock_};
  std::optional<Scaler> scaler_;
};

}  // namespace pelab::scale
