#include "tests/bench/load/fake_worker.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <utility>

namespace pelab::load {
namespace {

// The canonical JSON has the form `"epochs":150`.
int EpochsOf(const std::string& spec_json) {
  static const std::string member = "\"epochs\":";
  const std::size_t at = spec_json.find(member);
  return at == std::string::npos ? 1 : std::atoi(spec_json.c_str() + at + member.size());
}

std::string GpuName(int slot) { return "cuda:" + std::to_string(slot); }

}  // namespace

std::int64_t Now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

void FillEpoch(int epoch, v1::Epoch& to) {
  to.set_epoch(epoch);
  to.set_train_loss(1.0 / (3 + epoch));
  to.set_train_correct(40);
  to.set_train_total(99);
  to.set_test_loss(1.0 / (7 + epoch));
  to.set_test_correct(41);
  to.set_test_total(97);
  to.set_learning_rate(1e-3);
  to.set_seconds(0.1);
}

FakeWorker::FakeWorker(std::size_t index, std::string id, int slots, bool gpus,
                       const std::shared_ptr<grpc::Channel>& channel, WorkerHooks& hooks)
    : index_(index),
      id_(std::move(id)),
      slots_(slots),
      gpus_(gpus),
      hooks_(hooks),
      stub_(v1::Fleet::NewStub(channel)) {}

void FakeWorker::Start() {
  context_.set_wait_for_ready(true);
  stub_->async()->Session(&context_, this);
  AddHold();  // writes also start outside of reactions, until Leave
  {
    MutexLock lock(&mutex_);
    v1::Hello* hello = outgoing_.mutable_hello();
    hello->set_protocol(1);
    hello->set_worker_id(id_);
    hello->set_host("load");
    hello->set_version("load");
    for (int i = 0; i < slots_; ++i) {
      v1::Slot* slot = hello->add_slots();
      slot->set_slot(i);
      slot->set_device(gpus_ ? GpuName(i) : "cpu");
      slot->set_device_kind(gpus_ ? "gpu" : "cpu");
    }
    writing_ = true;
    StartWrite(&outgoing_);
  }
  StartRead(&incoming_);
  StartCall();
}

void FakeWorker::Leave() {
  {
    MutexLock lock(&mutex_);
    if (leaving_) return;
    leaving_ = true;
  }
  context_.TryCancel();
  RemoveHold();
}

void FakeWorker::TakeLatencies(Latencies& to) {
  MutexLock lock(&mutex_);
  to.Merge(latencies_);
  latencies_.Clear();
}

void FakeWorker::TakeBeats(Latencies& to) {
  MutexLock lock(&mutex_);
  to.Merge(beat_latencies_);
  beat_latencies_.Clear();
}

void FakeWorker::AddUnanswered(std::int64_t now, Latencies& to) {
  MutexLock lock(&mutex_);
  const auto add = [&](std::int64_t due) { to.Add(static_cast<double>(now - due) / 1e6); };
  for (const std::int64_t due : waiting_beats_) add(due);
  for (const auto& [id, attempt] : attempts_) {
    for (const std::int64_t due : attempt.waiting) add(due);
  }
}

void FakeWorker::OnReadDone(bool ok) {
  if (!ok) {
    {
      MutexLock lock(&mutex_);
      if (leaving_) return;
      leaving_ = true;
    }
    hooks_.broken.fetch_add(1);
    RemoveHold();
    return;
  }
  {
    MutexLock lock(&mutex_);
    switch (incoming_.message_case()) {
      case v1::CoordinatorMessage::kWelcome:
        heartbeat_ = std::int64_t{incoming_.welcome().heartbeat_ms()} * 1'000'000;
        next_beat_ = Now() + heartbeat_;
        hooks_.wake(index_, next_beat_);
        hooks_.welcomed.fetch_add(1);
        break;
      case v1::CoordinatorMessage::kAssignment:
        Take(incoming_.assignment());
        break;
      case v1::CoordinatorMessage::kAcks:
        for (const v1::Ack& ack : incoming_.acks().acks()) Take(ack);
        break;
      case v1::CoordinatorMessage::kHeartbeat:
        Take(incoming_.heartbeat());
        break;
      case v1::CoordinatorMessage::kStop:
        attempts_.erase(incoming_.stop().attempt_id());
        break;
      default:
        break;
    }
    SendNext();
  }
  StartRead(&incoming_);
}

void FakeWorker::Take(const v1::Assignment& assignment) {
  const std::int64_t now = Now();
  hooks_.assigned.fetch_add(1);
  if (hooks_.on_assignment) hooks_.on_assignment(assignment, now);
  Attempt& attempt = attempts_[assignment.attempt_id()];
  attempt = {.token = assignment.token(),
             .slot = assignment.slot(),
             .epochs = EpochsOf(assignment.spec_json())};
  attempt.interval = absl::ToInt64Nanoseconds(hooks_.pace(attempt.epochs));
  v1::Started* started = Add(assignment.attempt_id(), attempt, now)->mutable_started();
  started->set_epochs(attempt.epochs);
  started->set_environment_json("{}");
  started->mutable_execution()->set_threads(1);
  started->mutable_execution()->set_packing(1);
  // Spreads the events over the interval, as with trainers that started at different times.
  attempt.due = now + (attempt.interval * (1 + assignment.attempt_id() % 16)) / 16;
  if (attempt.interval == 0) {
    Report(assignment.attempt_id(), attempt, now);
  } else {
    hooks_.wake(index_, attempt.due);
  }
}

void FakeWorker::Take(const v1::Ack& ack) {
  const auto found = attempts_.find(ack.attempt_id());
  if (found == attempts_.end()) return;
  Attempt& attempt = found->second;
  const std::int64_t now = Now();
  while (attempt.acknowledged < ack.sequence() && !attempt.waiting.empty()) {
    latencies_.Add(static_cast<double>(now - attempt.waiting.front()) / 1e6);
    attempt.waiting.pop_front();
    attempt.acknowledged += 1;
    // Event 1 says that the job started, the last event that it ended.
    if (attempt.acknowledged > 1 && static_cast<int>(attempt.acknowledged) <= attempt.epochs + 1) {
      hooks_.epochs_acknowledged.fetch_add(1, std::memory_order_relaxed);
    }
  }
  if (ack.superseded()) {
    hooks_.superseded.fetch_add(1);
    attempts_.erase(found);
  } else if (attempt.finished && attempt.acknowledged == attempt.sequence) {
    hooks_.jobs_acknowledged.fetch_add(1);
    attempts_.erase(found);
  }
}

// An answer is for all heartbeats up to its number: those that were late went as one.
void FakeWorker::Take(const v1::HeartbeatAnswer& answer) {
  const std::int64_t now = Now();
  while (answered_beats_ < answer.sequence() && !waiting_beats_.empty()) {
    beat_latencies_.Add(static_cast<double>(now - waiting_beats_.front()) / 1e6);
    waiting_beats_.pop_front();
    answered_beats_ += 1;
  }
}

v1::Event* FakeWorker::Add(std::int64_t id, Attempt& attempt, std::int64_t due) {
  v1::Event* event = outbox_.add_events();
  event->set_attempt_id(id);
  event->set_token(attempt.token);
  event->set_sequence(++attempt.sequence);
  attempt.waiting.push_back(due);
  return event;
}

// Sends the events of the attempt that are due.
void FakeWorker::Report(std::int64_t id, Attempt& attempt, std::int64_t now) {
  std::int64_t epochs = 0;
  while (attempt.due <= now && attempt.next_epoch < attempt.epochs) {
    FillEpoch(attempt.next_epoch++, *Add(id, attempt, attempt.due)->mutable_epoch());
    attempt.due += attempt.interval;
    epochs += 1;
  }
  hooks_.epochs_sent.fetch_add(epochs, std::memory_order_relaxed);
  if (attempt.next_epoch < attempt.epochs || attempt.finished) return;
  attempt.finished = true;
  v1::Finished* finished = Add(id, attempt, now)->mutable_finished();
  finished->set_outcome(v1::ATTEMPT_OUTCOME_SUCCEEDED);
  finished->set_wall_seconds(0.1);
}

std::int64_t FakeWorker::Tick(std::int64_t now) {
  MutexLock lock(&mutex_);
  if (leaving_) return kNever;
  std::int64_t next = next_beat_;
  if (now >= next_beat_) {
    beat_due_ = true;
    beats_ += 1;
    waiting_beats_.push_back(next_beat_);
    next = next_beat_ = now + heartbeat_;
  }
  for (auto& [id, attempt] : attempts_) {
    if (attempt.finished) continue;
    if (attempt.due <= now) Report(id, attempt, now);
    if (!attempt.finished) next = std::min(next, attempt.due);
  }
  SendNext();
  return next;
}

// As a GPU that trains, and has had one error of a program.
void FakeWorker::Measure(v1::Heartbeat& beat) const {
  for (int i = 0; gpus_ && i < slots_; ++i) {
    v1::DeviceLoad& load = *beat.add_loads();
    load.set_device(GpuName(i));
    load.set_busy_percent(static_cast<int>((index_ + beat.sequence()) % 101));
    load.set_memory_used(std::uint64_t{61} << 30);
    load.set_memory_total(std::uint64_t{140} << 30);
    load.set_energy_joules(1e6 + 0.125 * static_cast<double>(beat.sequence()));
    v1::GpuErrors& errors = *beat.add_gpu_errors();
    errors.set_device(GpuName(i));
    errors.set_xid(31);
    errors.set_times(1);
  }
}

void FakeWorker::SendNext() {
  if (writing_ || leaving_) return;
  if (beat_due_) {
    beat_due_ = false;
    outgoing_.mutable_heartbeat()->Clear();
    outgoing_.mutable_heartbeat()->set_sequence(beats_);
    Measure(*outgoing_.mutable_heartbeat());
    for (const auto& [id, attempt] : attempts_) {
      v1::HeldAttempt* held = outgoing_.mutable_heartbeat()->add_held();
      held->set_attempt_id(id);
      held->set_token(attempt.token);
      held->set_slot(attempt.slot);
    }
  } else if (outbox_.events_size() > 0) {
    outgoing_.mutable_events()->Clear();
    outgoing_.mutable_events()->Swap(&outbox_);
  } else {
    return;
  }
  writing_ = true;
  StartWrite(&outgoing_);
}

void FakeWorker::OnWriteDone(bool ok) {
  MutexLock lock(&mutex_);
  writing_ = false;
  if (ok) SendNext();
}

void FakeWorker::OnDone(const grpc::Status&) { gone_.Notify(); }

}  // namespace pelab::load
