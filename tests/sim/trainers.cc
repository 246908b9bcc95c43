// The trainers of a simulated worker, step by step.
#include <algorithm>
#include <utility>

#include "tests/sim/truth.h"
#include "tests/sim/worker.h"

namespace pelab::sim {
namespace {

using agent::StopReason;

v1::Finished Ended(v1::AttemptOutcome outcome) {
  v1::Finished finished;
  finished.set_outcome(outcome);
  finished.set_wall_seconds(1);
  return finished;
}

}  // namespace

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

// Only one trainer at a time may use a slot or a job's directory.
bool SimWorker::MayBegin(std::int64_t id) const {
  const v1::Assignment& mine = disk_.spools.at(id).assignment;
  const std::uint64_t run = daemon_->entries.at(id).run;
  for (const auto& [other, entry] : daemon_->entries) {
    if (entry.run == run) continue;
    if (entry.phase == Phase::kEnded || entry.phase == Phase::kWaiting) continue;
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
      return Finish(id, agent::Failed(state::ErrorKind::kIo, "cannot fetch its kept weights"));
    }
  }
  entry.phase = Phase::kTraining;
  Later(id, world_.Between(absl::Milliseconds(100), absl::Seconds(2)));
}

void SimWorker::Train(std::int64_t id, Entry& entry) {
  const v1::Assignment& assignment = disk_.spools[id].assignment;
  if (entry.steps_to_failure == 0) {
    if (world_.Chance(0.1)) entry.steps_to_failure = -1;
    return Fail(id, entry.failure);
  }
  if (entry.steps_to_failure > 0) entry.steps_to_failure -= 1;
  v1::Event event;
  if (!entry.said_hello) {
    *event.mutable_started() = Hello(assignment, entry);
  } else if (entry.epoch < entry.epochs) {
    entry.state = NextState(entry.state);
    *event.mutable_epoch() = TrainedEpoch(assignment.key(), entry.epoch, entry.state);
    entry.epoch += 1;
    if (world_.Chance(0.7)) {
      disk_.checkpoints[JobDir(assignment)] = {entry.epoch, entry.state, entry.how};
    }
  } else if (!entry.analyses.empty()) {
    const v1::Analysis& analysis = entry.analyses.front();
    if (analysis.name() == "head_ablation") {
      *event.mutable_head_ablation() = MatrixOf(assignment.key(), analysis);
    } else {  // only the recorded sweep asks for another one
      *event.mutable_analysis() = RecordedJobOf(assignment.key())->analysis;
    }
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

// Each attempt starts at its own checkpoint.
v1::Started SimWorker::Hello(const v1::Assignment& assignment, Entry& entry) {
  v1::Execution execution = assignment.execution();
  if (!assignment.has_execution()) {
    execution.set_threads(settings_.threads);
    execution.set_packing(entry.packing);
  }
  entry.said_hello = true;
  entry.epochs = EpochsOf(assignment.spec_json());
  entry.how = HowOf(execution.threads(), execution.packing());
  entry.state = StartState(assignment.key(), entry.how);
  for (const v1::Analysis& analysis : assignment.analyses()) entry.analyses.push_back(analysis);
  if (assignment.has_weights()) {
    entry.epoch = entry.epochs;
  } else if (const auto kept = disk_.checkpoints.find(JobDir(assignment));
             kept != disk_.checkpoints.end() && kept->second.how == entry.how &&
             kept->second.epoch <= assignment.max_start_epoch()) {
    entry.epoch = kept->second.epoch;
    entry.state = kept->second.state;
  }
  v1::Started started;
  started.set_environment_json("{}");
  if (const RecordedJob* const recorded = RecordedJobOf(assignment.key())) {
    started = recorded->started;
  }
  started.set_start_epoch(entry.epoch);
  started.set_epochs(entry.epochs);
  *started.mutable_execution() = std::move(execution);
  started.set_better_alone(entry.better_alone);
  return started;
}

// If a trainer dies, all its unfinished jobs fail with it.
void SimWorker::Fail(std::int64_t id, state::ErrorKind kind) {
  std::vector<std::int64_t> failed = {id};
  for (const auto& [other, entry] : daemon_->entries) {
    const bool trains = entry.phase == Phase::kTraining || entry.phase == Phase::kFetching;
    if (other == id || entry.run != daemon_->entries[id].run || !trains) continue;
    if (kind == state::ErrorKind::kTrainerDied) failed.push_back(other);
  }
  for (const std::int64_t each : failed) {
    Finish(each, agent::Failed(kind, "a failure that was drawn"));
  }
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
    event.mutable_artifact()->set_bytes(ShapeOf(disk_.spools[id].assignment.key()).weights_bytes);
    Append(id, std::move(event));
  }
  Finish(id, Ended(v1::ATTEMPT_OUTCOME_SUCCEEDED));
}

// The attempt was told to stop.
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
                                                                  entry.how};
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
