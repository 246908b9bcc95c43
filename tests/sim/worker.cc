#include "tests/sim/worker.h"

#include <algorithm>
#include <utility>

#include "tests/sim/truth.h"
#include "worker/agent/supervisor.h"

namespace pelab::sim {
namespace {

using agent::StopReason;

constexpr absl::Duration kFirstPause = absl::Milliseconds(100);
constexpr absl::Duration kFarewell = absl::Milliseconds(300);
constexpr absl::Duration kPatience = absl::Seconds(30);  // of a daemon that is to end
constexpr absl::Duration kKeepalive = absl::Seconds(40);

const std::vector<v1::ErrorKind>& Failures() {
  static const auto* const kinds = new std::vector<v1::ErrorKind>{
      v1::ERROR_KIND_TRAINER_DIED, v1::ERROR_KIND_TRAINER_DIED,  v1::ERROR_KIND_IO,
      v1::ERROR_KIND_INTERNAL,     v1::ERROR_KIND_OUT_OF_MEMORY, v1::ERROR_KIND_NON_FINITE_LOSS,
      v1::ERROR_KIND_BAD_SPEC};
  return *kinds;
}

std::string JobDir(const v1::Assignment& assignment) {
  return absl::StrCat(assignment.key(), ".", assignment.job_id());
}

v1::Finished Ended(v1::AttemptOutcome outcome) {
  v1::Finished finished;
  finished.set_outcome(outcome);
  finished.set_wall_seconds(1);
  return finished;
}

// Of the canonical spec: {"…","train":{…,"epochs":3,…}}.
int EpochsOf(const std::string& spec_json) {
  constexpr std::string_view kName = "\"epochs\":";
  const std::size_t at = spec_json.find(kName);
  return at == std::string::npos ? 0 : std::atoi(spec_json.c_str() + at + kName.size());
}

}  // namespace

struct SimWorker::Daemon {
  Daemon(World& world, agent::WorkerIdentity identity, agent::AttemptHost* host)
      : session(std::move(identity), host, &world),
        backoff(kFirstPause, session.lease() / 4, [&world] { return world.Unit(); }) {}

  std::shared_ptr<bool> alive = std::make_shared<bool>(true);
  agent::Session session;
  rpc::Backoff backoff;
  std::map<std::int64_t, Entry> entries;
  std::shared_ptr<Wire> wire;
  absl::Duration timer = absl::InfiniteDuration();
  bool ending = false;
  bool gone_from_stream = false;
};

SimWorker::SimWorker(World& world, Coordinator& coordinator, WorkerSettings settings)
    : world_(world), coordinator_(coordinator), settings_(std::move(settings)) {}

SimWorker::~SimWorker() {
  if (daemon_) Die(absl::ZeroDuration(), /*quietly=*/true);
}

template <typename F>
void SimWorker::AfterInDaemon(absl::Duration delay, F run) {
  world_.After(delay, [alive = daemon_->alive, run = std::move(run)] {
    if (*alive) run();
  });
}

// The daemon -----------------------------------------------------------------------------------

void SimWorker::Start() {
  if (daemon_) return;
  agent::WorkerIdentity identity{
      absl::StrCat(settings_.id, ".", hosts_), settings_.id, "1", "", {}};
  for (int i = 0; i < settings_.slots; ++i) {
    v1::Slot& slot = identity.slots.emplace_back();
    slot.set_slot(i);
    slot.set_device("cpu");
    slot.set_device_kind("cpu");
  }
  daemon_ =
      std::make_unique<Daemon>(world_, std::move(identity), static_cast<agent::AttemptHost*>(this));
  world_.Note(settings_.id, " starts");
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
    if (spool.finished() != nullptr) continue;  // synced
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
  daemon_->session.BeginGoodbye(/*without_waiting=*/false);
  AfterInDaemon(kPatience, [this] {
    daemon_->session.BeginGoodbye(/*without_waiting=*/true);
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
    d.wire->SendUp(message);
    message.Clear();
  }
  if (d.session.said_goodbye()) {
    AfterInDaemon(kFarewell, [this] { Exit(absl::Seconds(1)); });
    return;
  }
  // One timer at a time, the earliest.
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

// The attempts, as the supervisor keeps them -----------------------------------------------------

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
  if (answer.acknowledged() > spool.last()) {  // lost with the power
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

void SimWorker::Take(const v1::Assignment& assignment, StopReason reason) {
  const std::int64_t id = assignment.attempt_id();
  if (daemon_->entries.count(id) != 0) return;  // sent again
  disk_.spools[id] = Spool{.assignment = assignment, .events = {}};
  Entry& entry = daemon_->entries[id];
  entry.reason = reason;
  entry.phase = Phase::kWaiting;
  entry.slot = assignment.slot();
  if (world_.Chance(settings_.failures)) {
    entry.steps_to_failure = static_cast<int>(world_.Draw(6));
    entry.failure = world_.OneOf(Failures());
  }
  Later(id, absl::Milliseconds(5));
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

// The trainers ---------------------------------------------------------------------------------

void SimWorker::Later(std::int64_t id, absl::Duration delay) {
  AfterInDaemon(delay, [this, id] { Go(id); });
}

void SimWorker::Go(std::int64_t id) {
  const auto found = daemon_->entries.find(id);
  if (found == daemon_->entries.end()) return;
  Entry& entry = found->second;
  if (entry.phase == Phase::kEnded) return;
  const bool uploads_on = entry.phase == Phase::kUploading && entry.reason == StopReason::kPreempt;
  if (entry.reason != StopReason::kNone && !uploads_on) {
    Conclude(id, entry);
  } else {
    switch (entry.phase) {
      case Phase::kWaiting:
      case Phase::kFetching:
        Begin(id, entry);
        break;
      case Phase::kTraining:
        Train(id, entry);
        break;
      case Phase::kUploading:
        Upload(id, entry);
        break;
      case Phase::kEnded:
        break;
    }
  }
  Reap();
  Pump();
}

// A slot, and a job's directory, is one trainer's at a time.
bool SimWorker::MayBegin(std::int64_t id) const {
  const v1::Assignment& mine = disk_.spools.at(id).assignment;
  for (const auto& [other, entry] : daemon_->entries) {
    if (other == id || entry.phase == Phase::kEnded || entry.phase == Phase::kWaiting) continue;
    const v1::Assignment& theirs = disk_.spools.at(other).assignment;
    if (theirs.slot() == mine.slot() || JobDir(theirs) == JobDir(mine)) return false;
  }
  return true;
}

void SimWorker::Begin(std::int64_t id, Entry& entry) {
  if (entry.phase == Phase::kWaiting && !MayBegin(id)) return Later(id, absl::Milliseconds(200));
  const v1::Assignment& assignment = disk_.spools[id].assignment;
  entry.phase = Phase::kFetching;
  if (assignment.has_weights()) {
    const bool reached = coordinator_.up() && link_.whole();
    if (!reached) return Later(id, world_.Between(absl::Milliseconds(100), absl::Seconds(5)));
    if (!coordinator_.HasArtifact(assignment.weights().sha256())) {
      return Finish(id, agent::Failed(v1::ERROR_KIND_IO, "cannot fetch its kept weights"));
    }
  }
  entry.phase = Phase::kTraining;
  Later(id, world_.Between(absl::Milliseconds(100), absl::Seconds(2)));
}

void SimWorker::Train(std::int64_t id, Entry& entry) {
  const v1::Assignment& assignment = disk_.spools[id].assignment;
  if (entry.steps_to_failure == 0) {
    if (world_.Chance(0.1)) entry.steps_to_failure = -1;
    return Finish(id, agent::Failed(entry.failure, "a failure that was drawn"));
  }
  if (entry.steps_to_failure > 0) entry.steps_to_failure -= 1;
  v1::Event event;
  if (!entry.said_hello) {
    entry.said_hello = true;
    entry.epochs = EpochsOf(assignment.spec_json());
    entry.threads =
        assignment.has_execution() ? assignment.execution().threads() : settings_.threads;
    entry.state = StartState(assignment.key(), entry.threads);
    for (const v1::Analysis& analysis : assignment.analyses()) entry.analyses.push_back(analysis);
    if (assignment.has_weights()) {
      entry.epoch = entry.epochs;
    } else if (const auto kept = disk_.checkpoints.find(JobDir(assignment));
               kept != disk_.checkpoints.end() && kept->second.threads == entry.threads &&
               kept->second.epoch <= assignment.max_start_epoch()) {
      entry.epoch = kept->second.epoch;
      entry.state = kept->second.state;
    }
    v1::Started* started = event.mutable_started();
    started->set_start_epoch(entry.epoch);
    started->set_epochs(entry.epochs);
    started->set_environment_json("{}");
    started->mutable_execution()->set_threads(entry.threads);
    started->mutable_execution()->set_packing(1);
  } else if (entry.epoch < entry.epochs) {
    entry.state = NextState(entry.state);
    *event.mutable_epoch() = EpochOf(entry.epoch, entry.state);
    entry.epoch += 1;
    if (world_.Chance(0.7)) {
      disk_.checkpoints[JobDir(assignment)] = {entry.epoch, entry.state, entry.threads};
    }
  } else if (!entry.analyses.empty()) {
    *event.mutable_head_ablation() = MatrixOf(assignment.key(), entry.analyses.front());
    entry.analyses.pop_front();
  } else if (assignment.has_weights()) {
    return Finish(id, Ended(v1::ATTEMPT_OUTCOME_SUCCEEDED));
  } else {
    disk_.spools[id].upload = true;
    entry.phase = Phase::kUploading;
    return Later(id, absl::Milliseconds(20));
  }
  Append(id, std::move(event));
  Later(id, settings_.epoch * (1 + world_.Unit()));
}

void SimWorker::Upload(std::int64_t id, Entry& entry) {
  const std::string sha256 = WeightsOf(disk_.spools[id].assignment.key());
  const bool put = link_.whole() && coordinator_.PutArtifact(sha256);
  if (!put && ++entry.tries < 50) {
    return Later(id, world_.Between(absl::Milliseconds(100), absl::Seconds(5)));
  }
  if (put) {
    v1::Event event;
    event.mutable_artifact()->set_name("weights.safetensors");
    event.mutable_artifact()->set_sha256(sha256);
    event.mutable_artifact()->set_bytes(12);
    Append(id, std::move(event));
  }
  Finish(id, Ended(v1::ATTEMPT_OUTCOME_SUCCEEDED));
}

// It was told to stop.
void SimWorker::Conclude(std::int64_t id, Entry& entry) {
  switch (entry.reason) {
    case StopReason::kSupersede:
      entry.phase = Phase::kEnded;
      entry.slot = -1;
      return;
    case StopReason::kCancel:
      return Finish(id, Ended(v1::ATTEMPT_OUTCOME_CANCELLED));
    default:
      if (entry.phase == Phase::kUploading) {  // left to the next daemon
        entry.phase = Phase::kEnded;
        entry.slot = -1;
        return;
      }
      if (entry.said_hello && entry.epoch > 0 && entry.epoch < entry.epochs) {
        disk_.checkpoints[JobDir(disk_.spools[id].assignment)] = {entry.epoch, entry.state,
                                                                  entry.threads};
      }
      return Finish(id, Ended(v1::ATTEMPT_OUTCOME_PREEMPTED));
  }
}

void SimWorker::Finish(std::int64_t id, v1::Finished finished) {
  v1::Event event;
  *event.mutable_finished() = std::move(finished);
  Append(id, std::move(event));
  Entry& entry = daemon_->entries[id];
  entry.phase = Phase::kEnded;
  entry.slot = -1;
}

void SimWorker::Append(std::int64_t id, v1::Event event) {
  Spool& spool = disk_.spools[id];
  event.set_attempt_id(id);
  event.set_token(spool.assignment.token());
  event.set_sequence(spool.last() + 1);
  event.set_time_ms(absl::ToUnixMillis(world_.Wall()));
  spool.events.push_back(std::move(event));
}

}  // namespace pelab::sim
