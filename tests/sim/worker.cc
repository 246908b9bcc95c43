#include "tests/sim/worker.h"

#include <algorithm>
#include <utility>

#include "tests/sim/recording.h"
#include "worker/agent/packs.h"
#include "worker/agent/supervisor.h"

namespace pelab::sim {
namespace {

using agent::StopReason;

constexpr absl::Duration kFarewell = absl::Milliseconds(300);
constexpr absl::Duration kWorkerPatience = absl::Seconds(30);  // of a daemon that has to end
constexpr absl::Duration kKeepalive = absl::Seconds(40);

const std::vector<state::ErrorKind>& Failures() {
  static const auto* const kinds = new std::vector<state::ErrorKind>{
      state::ErrorKind::kTrainerDied, state::ErrorKind::kTrainerDied,
      state::ErrorKind::kIo,          state::ErrorKind::kInternal,
      state::ErrorKind::kOutOfMemory, state::ErrorKind::kNonFiniteLoss,
      state::ErrorKind::kBadSpec};
  return *kinds;
}

}  // namespace

std::string SimWorker::JobDir(const v1::Assignment& assignment) {
  return absl::StrCat(assignment.key(), ".", assignment.job_id());
}

SimWorker::SimWorker(World& world, Coordinator& coordinator, WorkerSettings settings)
    : world_(world), coordinator_(coordinator), settings_(std::move(settings)) {}

SimWorker::~SimWorker() {
  if (daemon_) Die(absl::ZeroDuration(), /*quietly=*/true);
}

// The daemon -----------------------------------------------------------------------------------

agent::WorkerIdentity SimWorker::Identity() const {
  agent::WorkerIdentity identity{
      absl::StrCat(settings_.id, ".", hosts_), settings_.id, settings_.id, "1", "", {}};
  if (settings_.old) {
    const v1::Hello& recorded = RecordedHello();
    identity.version = recorded.version();
    identity.capabilities_json = recorded.capabilities_json();
    identity.protocols = {1, 1};
  }
  for (int i = 0; i < settings_.slots; ++i) {
    v1::Slot& slot = identity.slots.emplace_back();
    slot.set_slot(i);
    slot.set_device("cpu");
    slot.set_device_kind("cpu");
    slot.set_pack(settings_.pack);
  }
  return identity;
}

void SimWorker::Start() {
  if (daemon_) return;
  daemon_ = std::make_unique<Daemon>(world_, Identity(), static_cast<agent::AttemptHost*>(this));
  daemon_->old = settings_.old;
  world_.Note(settings_.id, settings_.old ? " starts, of the release before" : " starts");
  Recover();
  Connect();
}

void SimWorker::Recover() {
  for (auto at = disk_.spools.begin(); at != disk_.spools.end();) {
    if (at->second.last() == 0) {
      at = disk_.spools.erase(at);
      continue;
    }
    Entry& entry = daemon_->entries[at->first];
    entry.may_send = false;
    entry.interrupted = at->second.finished() == nullptr;
    ++at;
  }
}

void SimWorker::Die(absl::Duration outage, bool quietly) {
  if (!daemon_) return;
  *daemon_->alive = false;
  if (const auto wire = daemon_->wire) {
    wire->client = nullptr;
    wire->client_closed = nullptr;
    if (!quietly) {
      wire->CloseUp();
    } else {
      world_.After(kKeepalive, [wire] {
        const auto closed = wire->server_closed;
        if (wire->server && closed) closed();
      });
    }
  }
  daemon_.reset();
  if (outage > absl::ZeroDuration()) world_.After(outage, [this] { Start(); });
}

void SimWorker::Kill(absl::Duration outage) {
  if (!daemon_) return;
  world_.Note(settings_.id, " is killed");
  Die(outage, /*quietly=*/false);
}

void SimWorker::LosePower(absl::Duration outage) {
  if (!daemon_) return;
  world_.Note(settings_.id, " loses power");
  for (auto& [id, spool] : disk_.spools) {
    if (spool.finished() != nullptr) continue;  // a Finished event is synced
    spool.events.resize(world_.Draw(spool.events.size() + 1));
    spool.upload = spool.upload && world_.Chance(0.5);
  }
  std::erase_if(disk_.checkpoints, [this](const auto&) { return world_.Chance(0.3); });
  Die(outage, /*quietly=*/true);
}

void SimWorker::LoseHost(absl::Duration outage) {
  if (!daemon_) return;
  world_.Note(settings_.id, " is lost for good");
  disk_ = Disk();
  hosts_ += 1;
  Die(outage, /*quietly=*/true);
}

void SimWorker::Stop() {
  if (!daemon_ || daemon_->ending) return;
  world_.Note(settings_.id, " is told to end");
  daemon_->ending = true;
  StopAll(StopReason::kShutdown);
  daemon_->session.BeginGoodbye(v1::Goodbye::STOPPED, /*without_waiting=*/false);
  AfterInDaemon(kWorkerPatience, [this] {
    daemon_->session.BeginGoodbye(v1::Goodbye::STOPPED, /*without_waiting=*/true);
    Pump();
    if (daemon_) AfterInDaemon(kFarewell, [this] { Exit(absl::Seconds(1)); });
  });
  Pump();
}

void SimWorker::Exit(absl::Duration outage) {
  world_.Note(settings_.id, " ends");
  Die(outage, /*quietly=*/false);
}

// The session ----------------------------------------------------------------------------------

void SimWorker::Connect() {
  Daemon& d = *daemon_;
  const std::shared_ptr<Wire> wire = coordinator_.Connect(link_);
  if (!wire) {
    d.backoff.SetCap(d.session.lease() / 4);
    AfterInDaemon(d.backoff.Next(), [this] { Connect(); });
    return;
  }
  d.wire = wire;
  std::erase_if(wires_, [](const auto& old) { return old.expired(); });
  wires_.push_back(wire);
  wire->client = [this, alive = d.alive, self = wire.get()](const v1::CoordinatorMessage& message) {
    if (!*alive || daemon_->wire.get() != self) return;
    const absl::Status status = daemon_->session.Receive(message);
    if (!status.ok()) {
      world_.Violate(absl::StrCat(settings_.id, ": ", std::string(status.message())));
      return Disconnect();
    }
    Pump();
  };
  wire->client_closed = [this, alive = d.alive, self = wire.get()] {
    if (*alive && daemon_->wire.get() == self) Disconnect();
  };
  d.session.Connected();
  d.timer = absl::InfiniteDuration();
  Pump();
}

void SimWorker::Disconnect() {
  Daemon& d = *daemon_;
  world_.Note(settings_.id, " has no session");
  d.wire->client = nullptr;
  d.wire->client_closed = nullptr;
  d.wire->CloseUp();
  d.wire.reset();
  if (d.session.said_goodbye()) return Exit(absl::Seconds(1));
  if (d.ending && Idle()) return Exit(absl::Seconds(1));
  if (d.session.welcomed()) d.backoff.Reset();
  d.backoff.SetCap(d.session.lease() / 4);
  AfterInDaemon(d.backoff.Next(), [this] { Connect(); });
}

void SimWorker::Pump() {
  Daemon& d = *daemon_;
  if (!d.wire) return;
  if (d.session.Silent()) return Disconnect();
  v1::WorkerMessage message;
  while (d.session.Next(&message)) {
    if (d.old && message.has_hello()) {
      const std::string unknown = UnrecordedField(message.hello());
      if (!unknown.empty()) world_.Violate(absl::StrCat("an old worker says ", unknown));
    }
    d.wire->SendUp(message);
    message.Clear();
  }
  if (d.session.said_goodbye()) {
    AfterInDaemon(kFarewell, [this] { Exit(absl::Seconds(1)); });
    return;
  }
  // Only one timer at a time, the earliest.
  const absl::Duration next = d.session.NextTimer();
  if (next >= d.timer && d.timer > world_.Monotonic()) return;
  d.timer = next;
  AfterInDaemon(next - world_.Monotonic(), [this, next] {
    if (daemon_->timer != next) return;
    daemon_->timer = absl::InfiniteDuration();
    Pump();
  });
}

void SimWorker::BreakConnection() {
  if (daemon_ && daemon_->wire) Disconnect();
}

void SimWorker::LinkChanged() {
  for (const auto& weak : wires_) {
    if (const auto wire = weak.lock()) wire->Pump();
  }
}

// The attempts, as in the supervisor -----------------------------------------------------------

std::vector<v1::HeldAttempt> SimWorker::Held() {
  std::vector<v1::HeldAttempt> held;
  for (const auto& [id, entry] : daemon_->entries) {
    if (entry.dropped) continue;
    v1::HeldAttempt& attempt = held.emplace_back();
    attempt.set_attempt_id(id);
    attempt.set_token(disk_.spools[id].assignment.token());
    attempt.set_slot(entry.slot);
  }
  return held;
}

void SimWorker::Disconnected() {
  for (auto& [id, entry] : daemon_->entries) entry.may_send = false;
}

void SimWorker::Answer(const v1::HeldAnswer& answer) {
  const std::int64_t id = answer.attempt_id();
  const auto found = daemon_->entries.find(id);
  if (found == daemon_->entries.end()) return;
  if (!answer.accepted()) return Drop(id);
  Entry& entry = found->second;
  Spool& spool = disk_.spools[id];
  if (answer.acknowledged() > spool.last()) {  // lost in the power loss
    spool.base = answer.acknowledged();
    spool.events.clear();
  }
  entry.acknowledged = std::max(entry.acknowledged, answer.acknowledged());
  entry.may_send = true;
  entry.sent = answer.acknowledged();
  if (entry.interrupted) {
    entry.interrupted = false;
    if (spool.finished() == nullptr && spool.upload) {
      entry.phase = Phase::kUploading;
      Later(id, absl::Milliseconds(10));
    } else if (spool.finished() == nullptr) {
      Finish(id, agent::InterruptedByDaemon());
    }
  }
  Reap();
}

void SimWorker::Take(const std::vector<v1::Assignment>& assignments, StopReason reason) {
  std::vector<v1::Assignment> taken;
  for (const v1::Assignment& assignment : assignments) {
    if (daemon_->entries.count(assignment.attempt_id()) == 0) taken.push_back(assignment);
  }
  for (const std::vector<v1::Assignment>& together : agent::ByTrainer(taken)) {
    runs_ += 1;
    // A trainer trains one job after another if it finds that faster.
    const bool batch = together.size() > 1 && world_.Chance(0.8);
    for (const v1::Assignment& assignment : together) {
      const std::int64_t id = assignment.attempt_id();
      disk_.spools[id] = Spool{.assignment = assignment, .events = {}};
      Entry& entry = daemon_->entries[id];
      entry.reason = reason;
      entry.phase = Phase::kWaiting;
      entry.slot = assignment.slot();
      entry.run = runs_;
      entry.packing = batch ? static_cast<int>(together.size()) : 1;
      entry.better_alone = !batch && together.size() > 1;
      if (world_.Chance(settings_.failures)) {
        entry.steps_to_failure = static_cast<int>(world_.Draw(6));
        entry.failure = world_.OneOf(Failures());
      }
      Later(id, absl::Milliseconds(5));
    }
  }
}

void SimWorker::Stop(const v1::StopAttempt& stop) {
  const std::int64_t id = stop.attempt_id();
  const auto found = daemon_->entries.find(id);
  if (found == daemon_->entries.end() || disk_.spools[id].assignment.token() != stop.token())
    return;
  if (stop.reason() == v1::StopAttempt::SUPERSEDED) return Drop(id);
  StopOne(id, StopReason::kCancel);
}

void SimWorker::StopOne(std::int64_t id, StopReason reason) {
  Entry& entry = daemon_->entries[id];
  entry.reason = std::max(entry.reason, reason);
  if (entry.phase != Phase::kEnded) Later(id, absl::Seconds(1) * world_.Unit());
}

void SimWorker::StopAll(StopReason reason) {
  for (auto& [id, entry] : daemon_->entries) {
    if (entry.phase != Phase::kEnded) StopOne(id, reason);
  }
}

void SimWorker::Drop(std::int64_t id) {
  daemon_->entries[id].dropped = true;
  StopOne(id, StopReason::kSupersede);
  Reap();
}

void SimWorker::Acknowledge(const v1::Ack& ack) {
  const auto found = daemon_->entries.find(ack.attempt_id());
  if (found == daemon_->entries.end()) return;
  if (ack.superseded()) return Drop(ack.attempt_id());
  const std::uint64_t last = disk_.spools[ack.attempt_id()].last();
  found->second.acknowledged = std::max(found->second.acknowledged, std::min(ack.sequence(), last));
  Reap();
}

void SimWorker::Reap() {
  std::vector<std::int64_t> gone;
  for (const auto& [id, entry] : daemon_->entries) {
    const Spool& spool = disk_.spools[id];
    const bool acknowledged = spool.finished() != nullptr && entry.acknowledged == spool.last();
    if (acknowledged || (entry.dropped && entry.phase == Phase::kEnded)) gone.push_back(id);
  }
  for (const std::int64_t id : gone) Forget(id);
}

void SimWorker::Forget(std::int64_t id) {
  const Spool& spool = disk_.spools[id];
  const std::string directory = JobDir(spool.assignment);
  const bool final = spool.finished() != nullptr && agent::IsFinal(*spool.finished());
  daemon_->entries.erase(id);
  disk_.spools.erase(id);
  const bool used = std::any_of(daemon_->entries.begin(), daemon_->entries.end(), [&](auto& entry) {
    return JobDir(disk_.spools[entry.first].assignment) == directory;
  });
  if (final && !used) disk_.checkpoints.erase(directory);
}

bool SimWorker::NextEvents(std::size_t, v1::EventBatch* batch) {
  Reap();
  for (auto& [id, entry] : daemon_->entries) {
    if (!entry.may_send || entry.dropped) continue;
    const Spool& spool = disk_.spools[id];
    while (entry.sent < spool.last() && batch->events_size() < 20) {
      *batch->add_events() = spool.events[entry.sent - spool.base];
      entry.sent += 1;
    }
  }
  return batch->events_size() > 0;
}

bool SimWorker::NextLog(v1::LogChunk* chunk) {
  if (!world_.Chance(0.02)) return false;
  for (const auto& [id, entry] : daemon_->entries) {
    if (!entry.may_send || entry.dropped) continue;
    chunk->set_attempt_id(id);
    chunk->set_token(disk_.spools[id].assignment.token());
    chunk->set_offset(world_.Draw(1000));
    chunk->set_data("a line");
    return true;
  }
  return false;
}

bool SimWorker::Idle() {
  Reap();
  return std::all_of(daemon_->entries.begin(), daemon_->entries.end(), [this](const auto& at) {
    return at.second.phase == Phase::kEnded &&
           at.second.acknowledged >= disk_.spools[at.first].last();
  });
}

}  // namespace pelab::sim
