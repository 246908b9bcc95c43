// A simulated worker: the agent's real Session over simulated attempts. The simulated host follows
// worker/agent/supervisor.h and attempt.h: its spools survive the daemon, its checkpoints survive
// attempts, it sends again from the last acknowledged event, and it obeys stops within a second.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/rpc/backoff.h"
#include "tests/sim/coordinator.h"
#include "tests/sim/wire.h"
#include "tests/sim/world.h"
#include "worker/agent/attempt_host.h"
#include "worker/agent/session.h"
#include "worker/agent/trainer_trace.h"

namespace pelab::sim {

struct WorkerSettings {
  std::string id;
  int slots = 1;
  int threads = 1;
  int pack = 1;
  absl::Duration epoch = absl::Seconds(1);  // duration of an epoch, up to twice as long
  double failures = 0;                      // share of attempts whose trainer fails on its own
  bool old = false;                         // of the release before: it speaks protocol 1
};

class SimWorker final : private agent::AttemptHost {
 public:
  SimWorker(World& world, Coordinator& coordinator, WorkerSettings settings);
  ~SimWorker() override;

  void Start();
  bool up() const { return daemon_ != nullptr; }
  int slots() const { return settings_.slots; }
  const std::string& id() const { return settings_.id; }  // the name of all its hosts, too
  bool old() const { return settings_.old; }

  // Each of these functions ends the daemon and its trainers. Another daemon starts after `outage`.
  void Kill(absl::Duration outage);
  // The host goes down too: the unsynced part of the spools is lost.
  void LosePower(absl::Duration outage);
  // The host never comes back. A new host with an empty disk takes its place.
  void LoseHost(absl::Duration outage);
  void Stop();  // an orderly end; another daemon starts a little later
  // The next daemon is of the other release. The disk stays.
  void ChangeRelease() { settings_.old = !settings_.old; }

  void BreakConnection();
  Link& link() { return link_; }
  void LinkChanged();

 private:
  // State on the disk.
  struct Spool {
    v1::Assignment assignment;
    std::uint64_t base = 0;  // the sequence number before the first kept event
    std::vector<v1::Event> events;
    bool upload = false;  // training is done, the weights are not uploaded yet

    std::uint64_t last() const { return base + events.size(); }
    const v1::Finished* finished() const {
      return !events.empty() && events.back().has_finished() ? &events.back().finished() : nullptr;
    }
  };
  struct Checkpoint {
    int epoch = 0;
    std::uint64_t state = 0;
    int how = 0;
  };
  struct Disk {
    std::map<std::int64_t, Spool> spools;
    std::map<std::string, Checkpoint> checkpoints;  // by the job's directory
  };
  // State in the daemon's memory.
  enum class Phase { kWaiting, kFetching, kTraining, kUploading, kEnded };
  struct Entry {
    bool may_send = true;
    bool dropped = false;
    bool interrupted = false;
    std::uint64_t sent = 0;
    std::uint64_t acknowledged = 0;
    agent::StopReason reason = agent::StopReason::kNone;
    int slot = -1;
    std::uint64_t run = 0;  // attempts of one trainer have the same number
    int packing = 1;        // the trainer's own choice, if the assignment sets none
    bool better_alone = false;
    // The trainer.
    Phase phase = Phase::kEnded;
    bool said_hello = false;
    int epochs = 0;
    int epoch = 0;
    std::uint64_t state = 0;
    int how = 0;
    std::deque<v1::Analysis> analyses;
    int steps_to_failure = -1;
    state::ErrorKind failure = state::ErrorKind::kNone;
    int tries = 0;
  };
  struct Daemon {
    Daemon(World& world, agent::WorkerIdentity identity, agent::AttemptHost* host)
        : session(std::move(identity), host, &world),
          backoff(absl::Milliseconds(100), session.lease() / 4, [&world] { return world.Unit(); }) {
    }

    std::shared_ptr<bool> alive = std::make_shared<bool>(true);
    agent::Session session;
    rpc::Backoff backoff;
    std::map<std::int64_t, Entry> entries;
    std::shared_ptr<Wire> wire;
    absl::Duration timer = absl::InfiniteDuration();
    bool old = false;
    bool ending = false;
    bool gone_from_stream = false;
  };

  // agent::AttemptHost
  std::vector<v1::HeldAttempt> Held() override;
  void Disconnected() override;
  void Answer(const v1::HeldAnswer& answer) override;
  void Start(const v1::Assignment& assignment) override { Take({assignment}, {}); }
  void StartPack(const v1::AssignmentPack& pack) override {
    Take({pack.assignments().begin(), pack.assignments().end()}, {});
  }
  void Refuse(const v1::Assignment& assignment) override {
    Take({assignment}, agent::StopReason::kPreempt);
  }
  void Stop(const v1::StopAttempt& stop) override;
  void Acknowledge(const v1::Ack& ack) override;
  void Preempt(absl::Duration) override { StopAll(agent::StopReason::kPreempt); }
  void SetRetryCap(absl::Duration) override {}
  bool NextEvents(std::size_t max_bytes, v1::EventBatch* batch) override;
  bool NextLog(v1::LogChunk* chunk) override;
  bool Idle() override;

  agent::WorkerIdentity Identity() const;
  void Recover();
  void Take(const std::vector<v1::Assignment>& assignments, agent::StopReason reason);
  void StopOne(std::int64_t id, agent::StopReason reason);
  void StopAll(agent::StopReason reason);
  void Drop(std::int64_t id);
  void Reap();
  void Forget(std::int64_t id);

  // Steps of the trainer, each after a delay.
  void Later(std::int64_t id, absl::Duration delay);
  void Go(std::int64_t id);
  bool MayBegin(std::int64_t id) const;
  void Begin(std::int64_t id, Entry& entry);
  v1::Started Hello(const v1::Assignment& assignment, Entry& entry);
  void Fail(std::int64_t id, state::ErrorKind kind);
  void Train(std::int64_t id, Entry& entry);
  void Upload(std::int64_t id, Entry& entry);
  void Conclude(std::int64_t id, Entry& entry);
  void Finish(std::int64_t id, v1::Finished finished);
  void Append(std::int64_t id, v1::Event event);

  // The session runner.
  void Connect();
  void Pump();
  void Disconnect();
  void Exit(absl::Duration outage);
  void Die(absl::Duration outage, bool quietly);
  template <typename F>
  void AfterInDaemon(absl::Duration delay, F run) {
    world_.After(delay, [alive = daemon_->alive, run = std::move(run)] {
      if (*alive) run();
    });
  }
  static std::string JobDir(const v1::Assignment& assignment);

  World& world_;
  Coordinator& coordinator_;
  WorkerSettings settings_;
  int hosts_ = 0;
  std::uint64_t runs_ = 0;
  Link link_;
  Disk disk_;
  std::unique_ptr<Daemon> daemon_;
  std::vector<std::weak_ptr<Wire>> wires_;
};

}  // namespace pelab::sim
