#include "worker/agent/session.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/log.h"
#include "core/base/status.h"
#include "worker/agent/limits.h"

namespace pelab::agent {
namespace {

constexpr absl::Duration kDrainGrace = absl::Seconds(30);

}  // namespace

Session::Session(WorkerIdentity identity, AttemptHost* host, const Clock* clock, Measure measure)
    : identity_(std::move(identity)), host_(host), clock_(clock), measure_(std::move(measure)) {}

void Session::Connected() {
  host_->Disconnected();
  hello_due_ = true;
  welcomed_ = false;
  draining_ = !unfit_.empty();  // a coordinator that drains this worker says so again
  said_goodbye_ = false;
  heartbeats_ = 0;
  held_told_ = 0;
  heard_at_ = clock_->Monotonic();
}

v1::WorkerMessage Session::MakeHello() {
  v1::WorkerMessage message;
  v1::Hello* hello = message.mutable_hello();
  const rpc::ProtocolRange& protocols = identity_.protocols;
  hello->set_protocol(protocols.oldest);
  if (protocols.newest >= 2) {
    hello->set_protocol_max(protocols.newest);
    hello->add_features(std::string(rpc::kFilesFeature));
  }
  hello->set_worker_id(identity_.worker_id);
  hello->set_host(identity_.host);
  hello->set_name(identity_.name);
  hello->set_version(identity_.version);
  hello->set_capabilities_json(identity_.capabilities_json);
  hello->set_available_until_ms(identity_.available_until_ms);
  hello->set_margin_ms(identity_.margin_ms);
  for (const v1::Slot& slot : identity_.slots) *hello->add_slots() = slot;
  for (v1::HeldAttempt& held : host_->Held()) *hello->add_held() = std::move(held);
  return message;
}

absl::Status Session::Receive(const v1::CoordinatorMessage& message) {
  heard_at_ = clock_->Monotonic();
  if (message.has_welcome()) return ReceiveWelcome(message.welcome());
  if (!welcomed_)
    return absl::FailedPreconditionError("the coordinator sent something before its welcome");
  if (message.has_assignment()) ReceiveAssignment(message.assignment());
  if (message.has_pack()) ReceivePack(message.pack());
  if (message.has_stop()) host_->Stop(message.stop());
  if (message.has_drain()) ReceiveDrain(message.drain());
  for (const v1::Ack& ack : message.acks().acks()) host_->Acknowledge(ack);
  return absl::OkStatus();
}

absl::Status Session::ReceiveWelcome(const v1::Welcome& welcome) {
  if (welcomed_) return absl::FailedPreconditionError("the coordinator sent a second welcome");
  const rpc::ProtocolRange& protocols = identity_.protocols;
  if (welcome.protocol() < protocols.oldest || welcome.protocol() > protocols.newest) {
    return absl::FailedPreconditionError(absl::StrCat(
        "the coordinator (version ", welcome.coordinator_version(), ") chose protocol ",
        welcome.protocol(), "; this worker speaks ", rpc::ToString(protocols)));
  }
  if (welcome.heartbeat_ms() == 0 || welcome.lease_ms() <= welcome.heartbeat_ms()) {
    return absl::InvalidArgumentError(
        absl::StrCat("the coordinator asks for a heartbeat every ", welcome.heartbeat_ms(),
                     " ms within a lease of ", welcome.lease_ms(),
                     " ms; allowed: above 0, and less than the lease"));
  }
  welcomed_ = true;
  heartbeat_ = absl::Milliseconds(welcome.heartbeat_ms());
  lease_ = absl::Milliseconds(welcome.lease_ms());
  next_heartbeat_ = heard_at_ + heartbeat_;
  host_->SetRetryCap(lease_ / 4);
  for (const v1::HeldAnswer& answer : welcome.held()) host_->Answer(answer);
  return absl::OkStatus();
}

void Session::ReceiveAssignment(const v1::Assignment& assignment) {
  // An assignment that crossed a drain request, or the end of this daemon, ends as preempted, not
  // as failed.
  if (draining_ || goodbye_) {
    host_->Refuse(assignment);
  } else {
    host_->Start(assignment);
  }
}

void Session::ReceivePack(const v1::AssignmentPack& pack) {
  if (!draining_ && !goodbye_) return host_->StartPack(pack);
  for (const v1::Assignment& assignment : pack.assignments()) host_->Refuse(assignment);
}

void Session::ReceiveDrain(const v1::Drain& drain) {
  switch (drain.mode()) {
    case v1::Drain::CHECKPOINT:
      spdlog::info("draining: stopping trainers with their checkpoints kept");
      host_->Preempt(kDrainGrace);
      break;
    case v1::Drain::KILL:
      spdlog::info("draining: killing trainers");
      host_->Preempt(absl::ZeroDuration());
      break;
    case v1::Drain::RESUME:
      spdlog::info("taking jobs again");
      draining_ = false;
      unfit_.clear();
      return;
    default:
      spdlog::info("draining: taking no more jobs, letting trainers end");
      break;
  }
  draining_ = true;
}

// A heartbeat is also due at once if this worker holds fewer attempts than the coordinator thinks,
// so that a free slot does not wait for the next regular heartbeat.
bool Session::HeartbeatIsDue(v1::Heartbeat* heartbeat) {
  std::vector<v1::HeldAttempt> held = host_->Held();
  const absl::Duration now = clock_->Monotonic();
  if (now < next_heartbeat_ && held.size() >= held_told_) {
    held_told_ = held.size();
    return false;
  }
  next_heartbeat_ = now + heartbeat_;
  held_told_ = held.size();
  heartbeat->set_sequence(++heartbeats_);
  for (v1::HeldAttempt& attempt : held) *heartbeat->add_held() = std::move(attempt);
  heartbeat->set_unfit(unfit_);
  if (measure_) measure_(*heartbeat);
  return true;
}

bool Session::Next(v1::WorkerMessage* message) {
  message->Clear();
  if (hello_due_) {
    hello_due_ = false;
    *message = MakeHello();
    return true;
  }
  if (!welcomed_ || said_goodbye_) return false;
  if (HeartbeatIsDue(message->mutable_heartbeat())) return true;
  message->Clear();
  if (host_->NextLog(message->mutable_log())) return true;
  message->Clear();
  if (host_->NextEvents(limits::kBatchBytes, message->mutable_events())) return true;
  message->Clear();
  if (goodbye_ && (goodbye_without_waiting_ || host_->Idle())) {
    said_goodbye_ = true;
    message->mutable_goodbye()->set_reason(goodbye_reason_);
    return true;
  }
  return false;
}

absl::Duration Session::NextTimer() const {
  const absl::Duration silence = heard_at_ + lease_;
  return welcomed_ ? std::min(silence, next_heartbeat_) : silence;
}

bool Session::Silent() const { return clock_->Monotonic() >= heard_at_ + lease_; }

void Session::SetUnfit(const std::string& why) {
  unfit_ = why;
  draining_ = true;
  next_heartbeat_ = clock_->Monotonic();
  host_->Preempt(kDrainGrace);
}

void Session::BeginGoodbye(v1::Goodbye::Reason reason, bool without_waiting) {
  if (!goodbye_) goodbye_reason_ = reason;
  goodbye_ = true;
  goodbye_without_waiting_ = without_waiting;
}

}  // namespace pelab::agent
