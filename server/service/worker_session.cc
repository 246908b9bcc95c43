#include "server/service/worker_session.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/log.h"
#include "core/base/log_scope.h"
#include "server/limits.h"
#include "server/service/check_text.h"
#include "server/service/convert.h"

namespace pelab::service {
namespace {

constexpr absl::Duration kRetryFullQueue = absl::Milliseconds(20);

// Reduces a batch's results to what the scheduler needs: the last result of each attempt, with its
// change if there was one.
std::vector<store::EventStored> Digest(std::vector<store::EventStored> all) {
  if (all.size() == 1) return all;  // as most batches are
  std::map<std::int64_t, store::EventStored> last;
  for (const store::EventStored& event : all) {
    const auto [found, added] = last.try_emplace(event.attempt_id, event);
    // An event with a false token must not hide what happened to the attempt.
    if (added || event.foreign) continue;
    store::EventStored& entry = found->second;
    const auto change = entry.change;
    const bool better_alone = entry.better_alone || event.better_alone;
    const bool advanced = entry.advanced || event.advanced;
    const double epoch_seconds =
        event.epoch_seconds > 0 ? event.epoch_seconds : entry.epoch_seconds;
    entry = event;
    entry.better_alone = better_alone;
    entry.advanced = advanced;
    entry.epoch_seconds = epoch_seconds;
    if (!entry.change) entry.change = change;
  }
  std::vector<store::EventStored> digest;
  digest.reserve(last.size());
  for (auto& [id, event] : last) digest.push_back(std::move(event));
  return digest;
}

// Whether the scheduler may give a slot to another attempt after this event.
bool FreesSlot(const store::EventStored& event) {
  return event.change != nullptr || event.status == store::EventStored::kSuperseded;
}

// An event without a number or a body cannot be stored, and no answer could name it: it ends the
// session.
absl::Status CheckEnvelope(const v1::Event& event) {
  const auto bad = [&](absl::string_view what) {
    return absl::InvalidArgumentError(
        absl::StrCat("event ", event.sequence(), " of attempt ", event.attempt_id(), " ", what));
  };
  if (event.sequence() == 0 || event.sequence() > (std::uint64_t{1} << 62)) {
    return bad("has no sequence number; they count from 1");
  }
  return event.body_case() == v1::Event::BODY_NOT_SET ? bad("has no body") : absl::OkStatus();
}

const char* WhyItEnds(v1::Goodbye::Reason reason) {
  switch (reason) {
    case v1::Goodbye::STOPPED:
      return ": it was told to stop";
    case v1::Goodbye::IDLE:
      return ": it was idle for long";
    case v1::Goodbye::TIME_LIMIT:
      return ": its time limit is near";
    default:
      return "";
  }
}

absl::Status CheckHeld(absl::string_view message, int held) {
  if (held <= limits::kHeldOfWorker) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "a ", message, " names ", held, " attempts; allowed: at most ", limits::kHeldOfWorker));
}

v1::CoordinatorMessage Acks(const std::vector<store::EventStored>& digest) {
  v1::CoordinatorMessage message;
  for (const store::EventStored& event : digest) {
    v1::Ack* ack = message.mutable_acks()->add_acks();
    ack->set_attempt_id(event.attempt_id);
    ack->set_sequence(event.acknowledged);
    ack->set_superseded(event.status == store::EventStored::kSuperseded);
  }
  return message;
}

}  // namespace

// To the worker ---------------------------------------------------------------------------------

void WorkerSession::SendAssignment(const store::Assignment& assignment) {
  v1::CoordinatorMessage message;
  *message.mutable_assignment() = ToProto(assignment);
  Send(std::move(message));
}

void WorkerSession::SendPack(const std::vector<store::Assignment>& assignments) {
  v1::CoordinatorMessage message;
  for (const store::Assignment& assignment : assignments) {
    *message.mutable_pack()->add_assignments() = ToProto(assignment);
  }
  Send(std::move(message));
}

void WorkerSession::SendStop(std::int64_t attempt_id, std::uint64_t token,
                             sched::StopReason reason) {
  v1::CoordinatorMessage message;
  v1::StopAttempt* stop = message.mutable_stop();
  stop->set_attempt_id(attempt_id);
  stop->set_token(token);
  stop->set_reason(reason == sched::StopReason::kCancelled ? v1::StopAttempt::CANCELLED
                                                           : v1::StopAttempt::SUPERSEDED);
  Send(std::move(message));
}

void WorkerSession::SendDrain(v1::Drain::Mode drain) {
  v1::CoordinatorMessage message;
  message.mutable_drain()->set_mode(drain);
  Send(std::move(message));
}

// From the worker -------------------------------------------------------------------------------

bool WorkerSession::Handle(const std::shared_ptr<v1::WorkerMessage>& message) {
  if (worker_id_->empty() != message->has_hello()) {
    Close(absl::InvalidArgumentError(worker_id_->empty()
                                         ? "the first message of a session must be Hello"
                                         : "Hello is only the first message of a session"));
    return false;
  }
  switch (message->message_case()) {
    case v1::WorkerMessage::kHello:
      return OnHello(message->hello());
    case v1::WorkerMessage::kHeartbeat:
      return OnHeartbeat(message->heartbeat());
    case v1::WorkerMessage::kEvents:
      return OnEvents({message, &message->events()});
    case v1::WorkerMessage::kLog:
      return OnLog(*message->mutable_log());
    case v1::WorkerMessage::kGoodbye:
      return OnGoodbye(message->goodbye());
    case v1::WorkerMessage::MESSAGE_NOT_SET:
      break;
  }
  return true;  // from a newer worker: unknown, and not needed
}

void WorkerSession::Ended() {
  context_.executor.Post([self = shared_from_this()] {
    self->gone_ = true;
    if (!self->worker_id_->empty()) {
      self->context_.scheduler.Disconnected(*self->worker_id_, self.get());
    }
  });
}

bool WorkerSession::OnGoodbye(const v1::Goodbye& goodbye) {
  const LogScope scope({.worker_id = *worker_id_});
  spdlog::info("worker {} ends{}", *worker_id_, WhyItEnds(goodbye.reason()));
  context_.executor.Post([self = shared_from_this()] {
    self->context_.scheduler.Goodbye(*self->worker_id_, self.get());
    self->Close(absl::OkStatus());
  });
  return true;
}

bool WorkerSession::OnHello(const v1::Hello& hello) {
  if (absl::Status status = CheckHeld("hello", hello.held_size()); !status.ok()) {
    Close(status);
    return false;
  }
  auto parts = ToHello(hello, absl::ToUnixMillis(context_.clock.Wall()));
  if (!parts.ok()) {
    Close(parts.status());
    return false;
  }
  parts->write.principal = principal_;
  worker_id_ = std::make_shared<const std::string>(parts->write.worker_id);
  const LogScope scope({.worker_id = *worker_id_});
  spdlog::info("worker {} ({}) on {} connected with {} slots, holding {} attempts; protocol {}",
               parts->write.name, *worker_id_, hello.host(), hello.slots_size(), hello.held_size(),
               parts->protocol);
  auto done = [self = shared_from_this(), info = parts->info, protocol = parts->protocol,
               held = parts->write.held](absl::StatusOr<std::vector<store::ApplyResult>> results) {
    if (!results.ok()) return self->Close(absl::UnavailableError(results.status().message()));
    if (!results->front().ok()) return self->Close(results->front().status());
    const auto& stored = std::get<store::WorkerStored>(*results->front());
    if (!stored.refused.empty()) {
      return self->Close(absl::PermissionDeniedError(stored.refused));
    }
    v1::CoordinatorMessage message;
    v1::Welcome* welcome = message.mutable_welcome();
    welcome->set_protocol(protocol);
    welcome->set_coordinator_version(PELAB_VERSION);
    welcome->set_heartbeat_ms(absl::ToInt64Milliseconds(self->context_.heartbeat));
    welcome->set_lease_ms(absl::ToInt64Milliseconds(self->context_.lease));
    std::vector<store::Held> accepted;
    for (std::size_t i = 0; i < stored.held.size(); ++i) {
      v1::HeldAnswer* answer = welcome->add_held();
      answer->set_attempt_id(stored.held[i].attempt_id);
      answer->set_accepted(stored.held[i].accepted);
      answer->set_acknowledged(stored.held[i].acknowledged);
      if (stored.held[i].accepted) accepted.push_back(held[i]);
    }
    self->Send(std::move(message));
    sched::WorkerInfo connected = info;
    connected.drain = stored.drain;
    self->context_.executor.Post([self, info = std::move(connected), accepted] {
      if (self->gone_) return;
      self->context_.scheduler.Connected(info, self, accepted);
    });
  };
  std::vector<store::Write> writes;
  writes.emplace_back(std::move(parts->write));
  const absl::Status queued = context_.journal.Append(std::move(writes), std::move(done));
  if (!queued.ok()) Close(queued);
  return queued.ok();
}

bool WorkerSession::OnHeartbeat(const v1::Heartbeat& heartbeat) {
  if (absl::Status status = CheckHeld("heartbeat", heartbeat.held_size()); !status.ok()) {
    Close(status);
    return false;
  }
  std::vector<store::Held> held;
  for (const v1::HeldAttempt& attempt : heartbeat.held()) held.push_back(ToHeld(attempt));
  std::vector<sched::DeviceLoad> loads = ToLoads(heartbeat);
  std::vector<sched::GpuErrors> errors = ToErrors(heartbeat);
  DrainIfUnfit(heartbeat.unfit());
  v1::CoordinatorMessage answer;
  answer.mutable_heartbeat()->set_sequence(heartbeat.sequence());
  Send(std::move(answer));
  // From here on the next message may be read into `heartbeat`.
  context_.executor.Post([self = shared_from_this(), held = std::move(held),
                          loads = std::move(loads), errors = std::move(errors)]() mutable {
    self->context_.scheduler.Heartbeat(*self->worker_id_, self.get(), held);
    self->context_.scheduler.SetLoads(*self->worker_id_, self.get(), std::move(loads),
                                      std::move(errors));
    self->ReadOn();
  });
  return false;  // the step calls ReadOn
}

// A worker with a broken GPU is drained like by a person. Once is enough: if a person lets it take
// jobs again, its next heartbeats may not have heard of that yet.
void WorkerSession::DrainIfUnfit(const std::string& why) {
  if (why.empty()) {
    unfit_ = false;
    return;
  }
  if (unfit_) return;
  std::vector<store::Write> writes;
  writes.emplace_back(store::DrainWorker{*worker_id_, v1::Drain::CHECKPOINT});
  const absl::Status queued =
      context_.journal.Append(std::move(writes), [self = shared_from_this()](const auto& results) {
        if (!results.ok() || !results->front().ok()) return;
        self->context_.executor.Post(
            [self] { self->context_.scheduler.Drain(*self->worker_id_, v1::Drain::CHECKPOINT); });
      });
  if (!queued.ok()) return;  // the next heartbeat says it again
  unfit_ = true;
  const LogScope scope({.worker_id = *worker_id_});
  spdlog::warn("worker {} drains itself: {}", *worker_id_,
               Printable(why, limits::kDeviceTextBytes));
}

bool WorkerSession::OnLog(v1::LogChunk& log) {
  if (log.data().size() > limits::kLogPartBytes) log.mutable_data()->resize(limits::kLogPartBytes);
  std::vector<store::Write> writes;
  writes.emplace_back(store::AppendLog{log.attempt_id(), log.token(), log.offset(),
                                       std::move(*log.mutable_data()), worker_id_});
  const std::size_t bytes = store::ByteSize(writes);
  Queued(bytes);
  // Log output may be lost: if the queue is full, it is dropped.
  const absl::Status queued = context_.journal.Append(
      std::move(writes), [self = shared_from_this(), bytes](const auto&) { self->Unqueued(bytes); },
      store::Journal::Urgency::kBounded);
  if (!queued.ok()) Unqueued(bytes);
  return MayReadOn();
}

bool WorkerSession::OnEvents(const std::shared_ptr<const v1::EventBatch>& batch) {
  for (const v1::Event& event : batch->events()) {
    if (absl::Status status = CheckEnvelope(event); !status.ok()) {
      Close(status);
      return false;
    }
  }
  if (batch->events().empty()) return true;
  Store(batch);
  return false;  // Store calls ReadOn
}

// The events stay in the batch, which lives as long as one of them is used.
std::vector<store::Write> WorkerSession::WritesOf(
    const std::shared_ptr<const v1::EventBatch>& batch) const {
  const std::int64_t now = absl::ToUnixMillis(context_.clock.Wall());
  std::vector<store::Write> writes;
  writes.reserve(batch->events_size());
  for (const v1::Event& event : batch->events()) {
    writes.emplace_back(
        store::AttemptEvent{.event = std::shared_ptr<const v1::Event>(batch, &event),
                            .worker = worker_id_,
                            .now = now,
                            .jitter = 0.5 + context_.random_unit() / 2});
  }
  return writes;
}

// Queues the events of a batch, then reads on. If the queue is full, tries again a little later.
void WorkerSession::Store(const std::shared_ptr<const v1::EventBatch>& batch) {
  std::vector<store::Write> writes = WritesOf(batch);
  const std::size_t bytes = store::ByteSize(writes);
  auto done = [self = shared_from_this(), bytes,
               batch](absl::StatusOr<std::vector<store::ApplyResult>> results) {
    self->OnStored(*batch, std::move(results));
    self->Unqueued(bytes);
  };
  Queued(bytes);
  const absl::Status queued = context_.journal.Append(std::move(writes), std::move(done),
                                                      store::Journal::Urgency::kBounded);
  if (queued.ok()) {
    if (MayReadOn()) ReadOn();
    return;
  }
  Unqueued(bytes);
  if (absl::IsResourceExhausted(queued)) {
    context_.executor.PostAt(context_.clock.Monotonic() + kRetryFullQueue,
                             [self = shared_from_this(), batch] { self->Store(batch); });
  } else {
    Close(queued);
  }
}

void WorkerSession::Queued(std::size_t bytes) {
  MutexLock lock(&unstored_mutex_);
  unstored_bytes_ += bytes;
}

// Whether to read the next message now. If not, Unqueued reads on.
bool WorkerSession::MayReadOn() {
  MutexLock lock(&unstored_mutex_);
  held_back_ = unstored_bytes_ > limits::kUnstoredBytes;
  return !held_back_;
}

void WorkerSession::Unqueued(std::size_t bytes) {
  {
    MutexLock lock(&unstored_mutex_);
    unstored_bytes_ -= bytes;
    if (!held_back_ || unstored_bytes_ > limits::kUnstoredBytes) return;
    held_back_ = false;
  }
  ReadOn();
}

// Ends an attempt as failed: the schema refused one of its events, and would refuse the event
// again.
void WorkerSession::GiveUp(const v1::Event& event, const absl::Status& why) {
  const LogScope scope({.attempt_id = event.attempt_id(), .worker_id = *worker_id_});
  spdlog::error("event {} of attempt {}: {}", event.sequence(), event.attempt_id(),
                std::string{why.message()});
  std::vector<store::Write> end;
  end.emplace_back(store::EndAttempt{event.attempt_id(), state::Event::kFail,
                                     std::string{why.message()},
                                     absl::ToUnixMillis(context_.clock.Wall())});
  auto ended = [self = shared_from_this()](absl::StatusOr<std::vector<store::ApplyResult>> answer) {
    if (answer.ok() && answer->front().ok()) {
      self->context_.executor.Post([self, change = std::get<store::EventStored>(*answer->front())] {
        self->context_.scheduler.Stored(change);
      });
    }
    self->Close(absl::AbortedError("an event could not be stored: connect again"));
  };
  (void)context_.journal.Append(std::move(end), std::move(ended),
                                store::Journal::Urgency::kInternal);
}

void WorkerSession::OnStored(const v1::EventBatch& batch,
                             absl::StatusOr<std::vector<store::ApplyResult>> results) {
  if (!results.ok()) {
    // Nothing is acknowledged: the worker connects again and resends.
    return Close(absl::UnavailableError(results.status().message()));
  }
  std::vector<store::EventStored> stored;
  for (int i = 0; i < batch.events_size(); ++i) {
    store::ApplyResult& result = (*results)[i];
    if (absl::IsUnavailable(result.status())) {
      // The database failed before this event: the worker sends it and the following ones again.
      Close(result.status());
      break;
    }
    if (!result.ok()) {
      GiveUp(batch.events(i), result.status());
      continue;
    }
    stored.push_back(std::get<store::EventStored>(*std::move(result)));
    if (stored.back().status == store::EventStored::kGap) {
      Close(absl::AbortedError(absl::StrCat(
          "event ", batch.events(i).sequence(), " of attempt ", batch.events(i).attempt_id(),
          " came where ", stored.back().acknowledged + 1, " was due: connect again and resend")));
    }
  }
  std::vector<store::EventStored> digest = Digest(std::move(stored));
  if (digest.empty()) return;
  Send(Acks(digest));
  const bool frees_slot = std::any_of(digest.begin(), digest.end(), FreesSlot);
  auto tell = [self = shared_from_this(), digest = std::move(digest)] {
    for (const store::EventStored& event : digest) self->context_.scheduler.Stored(event);
  };
  if (frees_slot) {
    context_.executor.Post(std::move(tell));
  } else {
    context_.executor.PostLazily(std::move(tell));
  }
}

}  // namespace pelab::service
