// The scheduler on a real store in memory, with a fake clock, in one thread.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <deque>
#include <map>

#include "absl/strings/str_cat.h"
#include "server/sched/scheduler.h"
#include "server/store/database.h"
#include "server/store/store.h"
#include "tests/support/events.h"
#include "tests/support/one_thread_world.h"

namespace pelab::sched {

class Link : public WorkerLink {
 public:
  void SendAssignment(const store::Assignment& a) override {
    assignments.push_back(a);
    sizes.push_back(1);
  }
  void SendPack(const std::vector<store::Assignment>& pack) override {
    assignments.insert(assignments.end(), pack.begin(), pack.end());
    packs.push_back(pack);
    sizes.push_back(pack.size());
  }
  void SendStop(std::int64_t id, std::uint64_t, StopReason reason) override {
    stops.push_back({id, reason});
  }
  void SendDrain(v1::Drain::Mode drain) override { drains.push_back(drain); }
  void Close(const absl::Status& status) override { closed = status; }

  std::vector<store::Assignment> assignments;  // all assignments, also those in packs
  std::vector<std::vector<store::Assignment>> packs;
  std::vector<std::size_t> sizes;  // the number of jobs in each message
  std::vector<std::pair<std::int64_t, StopReason>> stops;
  std::vector<v1::Drain::Mode> drains;
  absl::Status closed;
};

class SchedulerTest : public testing::Test {
 protected:
  SchedulerTest() { MakeScheduler(); }

  void MakeScheduler() {
    scheduler_ = std::make_unique<Scheduler>(
        world_, world_, world_,
        SchedulerOptions{
            .lease = absl::Seconds(20),
            .longest_silence = longest_silence_,
            .token = [this] { return ++token_; },
            .on_dispatch = [this](absl::Duration waited) { waits_.push_back(waited); },
            .on_spent = [this](const Account& account) { spent_.push_back(account.name()); }});
    world_.on_change = [this](bool works) { scheduler_->StorageWorks(works); };
    scheduler_->Start();
  }
  // Recovers like a coordinator that starts on the same database.
  void Recover() {
    ASSERT_TRUE(
        world_.store
            ->Recover(
                [&](const auto& sweep) { scheduler_->SetSweepSettings(Owned(sweep.settings)); },
                [&](const auto& job) { scheduler_->AddReady(job); },
                [&](const auto& open) { scheduler_->RecoverOpen(open); }, [](const auto&) {})
            .ok());
  }
  template <typename Result>
  Result Do(store::Write write) {
    const std::vector<store::Write> writes = {std::move(write)};
    return std::get<Result>(*world_.store->Apply(writes)->front());
  }
  // Submits a sweep of `jobs` jobs of one epoch.
  std::int64_t Submit(const std::string& name, int jobs, int priority = 0,
                      const std::string& device = "any", const std::string& analyses = "[]") {
    const auto sweep = Do<store::SweepStored>(store::SubmitSweep{.name = name,
                                                                 .client_token = name,
                                                                 .analyses_json = analyses,
                                                                 .priority = priority,
                                                                 .cells = 1});
    store::ExpandSlice slice{.sweep_id = sweep.sweep_id, .from = 0, .next = 1, .last = true};
    for (int i = 0; i < jobs; ++i) {
      slice.cells.push_back({.ordinal = static_cast<std::uint64_t>(i),
                             .key = absl::StrCat(name, i),
                             .spec_json = "{}",
                             .requirement = {.pe = "rope", .device_kind = device},
                             .epochs = 1});
    }
    Expand(sweep.sweep_id, slice);
    return sweep.sweep_id;
  }
  // Submits a sweep of `cells` configurations of `seeds` jobs each; the seed varies fastest.
  std::int64_t SubmitSeeds(const std::string& name, int cells, int seeds, int priority = 0,
                           const std::string& device = "any") {
    const auto sweep = Do<store::SweepStored>(store::SubmitSweep{.name = name,
                                                                 .client_token = name,
                                                                 .analyses_json = "[]",
                                                                 .priority = priority,
                                                                 .cells = 1});
    store::ExpandSlice slice{.sweep_id = sweep.sweep_id, .from = 0, .next = 1, .last = true};
    for (int i = 0; i < cells * seeds; ++i) {
      slice.cells.push_back({.ordinal = static_cast<std::uint64_t>(i),
                             .key = absl::StrCat(name, i),
                             .seed = i % seeds,
                             .spec_json = absl::StrCat("{\"cell\":\"", name, i / seeds, "\"}"),
                             .requirement = {.pe = "rope", .device_kind = device},
                             .epochs = 1});
    }
    Expand(sweep.sweep_id, slice);
    return sweep.sweep_id;
  }
  // Stores the slice; owner_ is the owner of its sweep.
  void Expand(std::int64_t sweep_id, const store::ExpandSlice& slice) {
    owners_[sweep_id] = owner_;
    auto stored = Do<store::SliceStored>(slice);
    for (store::SweepSettings& settings : stored.sweep_settings) settings = Owned(settings);
    scheduler_->Expanded(stored);
    world_.Settle();
  }
  store::SweepSettings Owned(store::SweepSettings settings) const {
    const auto found = owners_.find(settings.sweep_id);
    if (found != owners_.end()) settings.owner = found->second;
    return settings;
  }
  std::shared_ptr<Link> Connect(const std::string& id, int slots,
                                const std::vector<store::Held>& held = {},
                                const std::string& capabilities = "{}",
                                const std::string& name = "") {
    const auto hello = Do<store::WorkerStored>(
        store::WorkerHello{.worker_id = id, .name = name, .slots_json = "[]"});
    auto link = std::make_shared<Link>();
    WorkerInfo info{.worker_id = id,
                    .name = name,
                    .capabilities = *Capabilities::Parse(capabilities),
                    .drain = hello.drain};
    for (int i = 0; i < slots; ++i) info.slots.push_back({i, "cpu", "cpu", 0});
    scheduler_->Connected(info, link, held);
    world_.Settle();
    return link;
  }
  // A worker of one slot that has so much time left, and gives its jobs back `margin` before.
  std::shared_ptr<Link> ConnectFor(const std::string& id, absl::Duration time_left,
                                   absl::Duration margin) {
    const auto hello =
        Do<store::WorkerStored>(store::WorkerHello{.worker_id = id, .slots_json = "[]"});
    auto link = std::make_shared<Link>();
    scheduler_->Connected({.worker_id = id,
                           .slots = {{0, "cpu", "cpu", 0}},
                           .capabilities = *Capabilities::Parse("{}"),
                           .drain = hello.drain,
                           .time_left = time_left,
                           .margin = margin},
                          link, {});
    world_.Settle();
    return link;
  }
  // A worker whose slots each take up to `pack` jobs of one configuration.
  std::shared_ptr<Link> ConnectPacking(const std::string& id, int slots, int pack,
                                       const std::vector<store::Held>& held = {},
                                       const std::string& device = "cpu") {
    const auto hello =
        Do<store::WorkerStored>(store::WorkerHello{.worker_id = id, .slots_json = "[]"});
    auto link = std::make_shared<Link>();
    WorkerInfo info{
        .worker_id = id, .capabilities = *Capabilities::Parse("{}"), .drain = hello.drain};
    for (int i = 0; i < slots; ++i) info.slots.push_back({i, device, device, 0, pack});
    scheduler_->Connected(info, link, held);
    world_.Settle();
    return link;
  }
  // Stores an event of a worker's attempt. The scheduler does not know it yet.
  store::EventStored Write(const store::Assignment& a, std::uint64_t sequence, EventBody body) {
    return Do<store::EventStored>(EventWrite(a.attempt_id, a.token, sequence, std::move(body),
                                             absl::ToUnixMillis(world_.Wall()), 0.5));
  }
  store::EventStored Say(const store::Assignment& a, std::uint64_t sequence, EventBody body) {
    const auto stored = Write(a, sequence, std::move(body));
    scheduler_->Stored(stored);
    world_.Settle();
    return stored;
  }
  void Succeed(const store::Assignment& a) {
    Say(a, 1, StartedEvent(0, 1));
    Say(a, 2, OneWrong());
    Say(a, 3, SucceededEvent());
  }
  void Fail(const store::Assignment& a, state::ErrorKind kind = state::ErrorKind::kTrainerDied) {
    Say(a, 1, FailedEvent(kind, "it broke"));
  }
  static store::Held Holding(const store::Assignment& a) { return {a.attempt_id, a.token, a.slot}; }
  std::string Text(const std::string& sql) {
    return world_.store->database().connection().execAndGet(sql).getString();
  }

  World world_;
  // Applies from the next MakeScheduler on.
  absl::Duration longest_silence_ = absl::InfiniteDuration();
  std::uint64_t token_ = 0;
  std::vector<absl::Duration> waits_;  // of the jobs that were assigned
  std::vector<std::string> spent_;     // principals of which on_spent told
  std::string owner_;                  // of the sweeps that are submitted from now on
  std::map<std::int64_t, std::string> owners_;
  std::unique_ptr<Scheduler> scheduler_;
};

}  // namespace pelab::sched
