#include "worker/agent/supervisor.h"

#include <algorithm>
#include <utility>

#include "core/base/file.h"
#include "core/base/log.h"
#include "core/base/status.h"
#include "worker/agent/packs.h"

namespace pelab::agent {
namespace {

constexpr absl::Duration kCancelGrace = absl::Seconds(1);
constexpr std::size_t kLogChunkBytes = 64 << 10;
constexpr absl::Duration kDeferredPause = absl::Seconds(1);

std::string Text(const absl::Status& status) { return std::string(status.message()); }

}  // namespace

bool IsFinal(const v1::Finished& finished) {
  switch (finished.outcome()) {
    case v1::ATTEMPT_OUTCOME_SUCCEEDED:
    case v1::ATTEMPT_OUTCOME_CANCELLED:
      return true;
    case v1::ATTEMPT_OUTCOME_FAILED:
      return finished.error_kind() == v1::ERROR_KIND_BAD_SPEC ||
             finished.error_kind() == v1::ERROR_KIND_OUT_OF_MEMORY ||
             finished.error_kind() == v1::ERROR_KIND_NON_FINITE_LOSS;
    default:
      return false;
  }
}

absl::StatusOr<std::unique_ptr<Supervisor>> Supervisor::Create(AttemptContext context,
                                                               std::vector<SlotPlan> plans) {
  PELAB_ASSIGN_OR_RETURN(Pipe pipe, MakePipe());
  return std::unique_ptr<Supervisor>(
      new Supervisor(std::move(context), std::move(plans), std::move(pipe)));
}

Supervisor::Supervisor(AttemptContext context, std::vector<SlotPlan> plans, Pipe parent_pipe)
    : context_(std::move(context)), plans_(std::move(plans)), parent_pipe_(std::move(parent_pipe)) {
  context_.parent_fd = parent_pipe_.read.get();
}

Supervisor::~Supervisor() { StopAll(StopReason::kShutdown, absl::ZeroDuration()); }

void Supervisor::Recover() {
  for (const std::int64_t attempt_id : context_.work_dir->ListAttempts()) RecoverOne(attempt_id);
  context_.work_dir->RemoveOldJobs();
}

void Supervisor::RecoverOne(std::int64_t attempt_id) {
  absl::StatusOr<v1::Assignment> assignment = context_.work_dir->LoadAssignment(attempt_id);
  absl::StatusOr<std::unique_ptr<Spool>> spool =
      Spool::Open(context_.work_dir->AttemptDir(attempt_id) + "/spool", context_.quota);
  const LogScope scope({.attempt_id = attempt_id});
  if (!assignment.ok() || !spool.ok() || (*spool)->last() == 0) {
    if (!assignment.ok())
      spdlog::warn("forgetting attempt {}: {}", attempt_id, Text(assignment.status()));
    if (!spool.ok()) spdlog::warn("forgetting attempt {}: {}", attempt_id, Text(spool.status()));
    context_.work_dir->RemoveAttempt(attempt_id).IgnoreError();
    return;
  }
  Entry entry;
  entry.interrupted = !(*spool)->finished().has_value();
  entry.attempt = std::make_shared<Attempt>(&context_, *std::move(assignment), *std::move(spool));
  spdlog::info("attempt {} ({}) was left behind by an earlier daemon, {}", attempt_id,
               entry.attempt->assignment().label(),
               entry.interrupted ? "unfinished" : "with events to send");
  entries_.emplace(attempt_id, std::move(entry));
}

Supervisor::Entry* Supervisor::Find(std::int64_t attempt_id, std::uint64_t token) {
  const auto found = entries_.find(attempt_id);
  if (found == entries_.end() || found->second.attempt->assignment().token() != token)
    return nullptr;
  return &found->second;
}

std::vector<v1::HeldAttempt> Supervisor::Held() {
  std::vector<v1::HeldAttempt> held;
  for (const auto& [id, entry] : entries_) {
    if (entry.dropped || IsAcknowledged(entry)) continue;
    v1::HeldAttempt& attempt = held.emplace_back();
    attempt.set_attempt_id(id);
    attempt.set_token(entry.attempt->assignment().token());
    attempt.set_slot(entry.attempt->slot());
  }
  for (const auto& [id, assignment] : deferred_) {
    v1::HeldAttempt& attempt = held.emplace_back();
    attempt.set_attempt_id(id);
    attempt.set_token(assignment.token());
    attempt.set_slot(assignment.slot());
  }
  return held;
}

void Supervisor::Disconnected() {
  for (auto& [id, entry] : entries_) entry.may_send = false;
}

void Supervisor::Answer(const v1::HeldAnswer& answer) {
  if (!answer.accepted()) deferred_.erase(answer.attempt_id());
  const auto found = entries_.find(answer.attempt_id());
  if (found == entries_.end()) return;
  Entry& entry = found->second;
  if (!answer.accepted()) {
    Drop(&entry);
    return;
  }
  Spool& spool = entry.attempt->spool();
  if (const absl::Status status = spool.ContinueAfter(answer.acknowledged()); !status.ok()) {
    const LogScope scope(IdsOf(entry.attempt->assignment()));
    spdlog::error("attempt {}: {}", answer.attempt_id(), Text(status));
  }
  spool.Acknowledge(answer.acknowledged());
  entry.may_send = true;
  entry.sent = answer.acknowledged();
  if (entry.interrupted) Resume(&entry);
  Reap();
}

void Supervisor::Resume(Entry* entry) {
  entry->interrupted = false;
  Attempt& attempt = *entry->attempt;
  if (attempt.spool().finished().has_value()) return;
  if (std::optional<event::DoneLine> done =
          context_.work_dir->LoadUpload(attempt.assignment().attempt_id())) {
    attempt.StartUpload(*std::move(done));
  } else {
    attempt.FinishInterrupted();
  }
}

void Supervisor::Take(const std::vector<v1::Assignment>& assignments, StopReason reason) {
  std::vector<v1::Assignment> taken;
  for (const v1::Assignment& assignment : assignments) {
    const std::int64_t attempt_id = assignment.attempt_id();
    // a repeated message
    if (entries_.count(attempt_id) > 0 || deferred_.count(attempt_id) > 0) continue;
    const absl::Status admitted = Admit(assignment);
    if (admitted.ok()) {
      taken.push_back(assignment);
      continue;
    }
    // Without a spool not even the failure can be recorded. The attempt is not held, so it is lost
    // after one lease. On a full disk that would lose one job after another, so there the
    // assignment waits.
    const LogScope scope(IdsOf(assignment));
    spdlog::error("cannot take attempt {} ({}): {}", attempt_id, assignment.label(),
                  Text(admitted));
    if (absl::IsResourceExhausted(admitted) && reason == StopReason::kNone) {
      deferred_.emplace(attempt_id, assignment);
    }
  }
  for (const std::vector<v1::Assignment>& together : ByTrainer(taken)) Launch(together, reason);
}

void Supervisor::AdmitDeferred() {
  if (deferred_.empty() || context_.clock->Monotonic() - tried_deferred_ < kDeferredPause) return;
  tried_deferred_ = context_.clock->Monotonic();
  std::erase_if(deferred_, [this](const auto& entry) {
    const absl::Status admitted = Admit(entry.second);
    if (admitted.ok()) Launch({entry.second}, StopReason::kNone);
    return !absl::IsResourceExhausted(admitted);
  });
}

// Makes the attempt's directory, spool and entry.
absl::Status Supervisor::Admit(const v1::Assignment& assignment) {
  const std::int64_t attempt_id = assignment.attempt_id();
  context_.work_dir->RemoveAttempt(attempt_id).IgnoreError();
  PELAB_RETURN_IF_ERROR(context_.work_dir->SaveAssignment(assignment));
  absl::StatusOr<std::unique_ptr<Spool>> spool =
      Spool::Open(context_.work_dir->AttemptDir(attempt_id) + "/spool", context_.quota);
  if (!spool.ok()) return spool.status();
  Entry& entry = entries_[attempt_id];
  entry.attempt = std::make_shared<Attempt>(&context_, assignment, *std::move(spool));
  entry.may_send = true;
  return absl::OkStatus();
}

// Starts one trainer for attempts that are admitted.
void Supervisor::Launch(const std::vector<v1::Assignment>& together, StopReason reason) {
  const int slot = together.front().slot();
  std::optional<SlotPlan> plan;
  if (slot >= 0 && slot < static_cast<int>(plans_.size())) plan = plans_[slot];
  TrainerRun::Members members;
  for (const v1::Assignment& assignment : together) {
    members.push_back(entries_.at(assignment.attempt_id()).attempt);
  }
  const auto run = std::make_shared<TrainerRun>(&context_, std::move(plan), std::move(members));
  for (const v1::Assignment& assignment : together) {
    Entry& entry = entries_.at(assignment.attempt_id());
    entry.run = run;
    if (reason != StopReason::kNone) StopOne(entry, reason, absl::ZeroDuration());
  }
  run->Start();
}

void Supervisor::StopOne(Entry& entry, StopReason reason, absl::Duration grace) {
  if (entry.run != nullptr) {
    entry.run->Stop(*entry.attempt, reason, grace);
  } else {
    entry.attempt->Stop(reason, grace);
  }
}

// True if the coordinator knows how the attempt ended. Its trainer may still work on other jobs.
bool Supervisor::IsAcknowledged(const Entry& entry) {
  const Spool& spool = entry.attempt->spool();
  return spool.finished().has_value() && spool.acknowledged() == spool.last();
}

void Supervisor::Stop(const v1::StopAttempt& stop) {
  deferred_.erase(stop.attempt_id());
  Entry* entry = Find(stop.attempt_id(), stop.token());
  if (entry == nullptr) return;
  if (stop.reason() == v1::StopAttempt::SUPERSEDED) {
    Drop(entry);
  } else {
    const LogScope scope(IdsOf(entry->attempt->assignment()));
    spdlog::info("attempt {} ({}): cancelled", stop.attempt_id(),
                 entry->attempt->assignment().label());
    StopOne(*entry, StopReason::kCancel, kCancelGrace);
  }
}

void Supervisor::Drop(Entry* entry) {
  if (!entry->dropped) {
    const LogScope scope(IdsOf(entry->attempt->assignment()));
    spdlog::info("attempt {} ({}): superseded, stopping it",
                 entry->attempt->assignment().attempt_id(), entry->attempt->assignment().label());
  }
  entry->dropped = true;
  StopOne(*entry, StopReason::kSupersede, kCancelGrace);
  Reap();
}

void Supervisor::Acknowledge(const v1::Ack& ack) {
  const auto found = entries_.find(ack.attempt_id());
  if (found == entries_.end()) return;
  if (ack.superseded()) {
    Drop(&found->second);
    return;
  }
  found->second.attempt->spool().Acknowledge(ack.sequence());
  Reap();
}

// Forgets attempts with nothing left to do or to send. An attempt can have ended for the
// coordinator while its trainer still uses its directories; then it stays.
void Supervisor::Reap() {
  for (auto at = entries_.begin(); at != entries_.end();) {
    const Entry& entry = at->second;
    if (!entry.attempt->ended() || !(entry.dropped || IsAcknowledged(entry))) {
      ++at;
      continue;
    }
    Forget(*entry.attempt);
    // the destructor waits for the attempt's thread, which is about to end
    at = entries_.erase(at);
  }
}

void Supervisor::Forget(Attempt& attempt) {
  const v1::Assignment& assignment = attempt.assignment();
  const LogScope scope(IdsOf(assignment));
  const std::optional<v1::Finished> finished = attempt.spool().finished();
  if (finished.has_value()) {
    spdlog::info("attempt {} ({}): ended and acknowledged", assignment.attempt_id(),
                 assignment.label());
  }
  const absl::StatusOr<std::string> job_dir = context_.work_dir->JobDir(assignment);
  absl::Status removed = context_.work_dir->RemoveAttempt(assignment.attempt_id());
  if (finished.has_value() && IsFinal(*finished) && job_dir.ok() &&
      !IsUsed(*job_dir, assignment.attempt_id())) {
    removed.Update(RemoveAll(*job_dir));
  }
  if (!removed.ok()) spdlog::warn("{}", Text(removed));
}

// True if another attempt here uses that directory.
bool Supervisor::IsUsed(const std::string& job_dir, std::int64_t but_attempt) const {
  for (const auto& [id, entry] : entries_) {
    if (id != but_attempt &&
        context_.work_dir->JobDir(entry.attempt->assignment()).value_or("") == job_dir)
      return true;
  }
  return false;
}

void Supervisor::StopAll(StopReason reason, absl::Duration grace) {
  deferred_.clear();  // no longer held: they are lost after one lease
  for (auto& [id, entry] : entries_) {
    if (!entry.attempt->ended()) StopOne(entry, reason, grace);
  }
}

void Supervisor::Preempt(absl::Duration grace) { StopAll(StopReason::kPreempt, grace); }

void Supervisor::Shutdown(absl::Duration grace) { StopAll(StopReason::kShutdown, grace); }

bool Supervisor::NextEvents(std::size_t max_bytes, v1::EventBatch* batch) {
  Reap();
  AdmitDeferred();
  for (auto& [id, entry] : entries_) {
    if (!entry.may_send || entry.dropped) continue;
    const absl::StatusOr<std::uint64_t> sent =
        entry.attempt->spool().Read(entry.sent, max_bytes, batch);
    if (!sent.ok()) {
      const LogScope scope(IdsOf(entry.attempt->assignment()));
      spdlog::error("attempt {}: {}; giving it up", id, Text(sent.status()));
      entry.dropped = true;
      StopOne(entry, StopReason::kSupersede, kCancelGrace);
      continue;
    }
    entry.sent = *sent;
    if (batch->ByteSizeLong() >= max_bytes) break;
  }
  return batch->events_size() > 0;
}

bool Supervisor::NextLog(v1::LogChunk* chunk) {
  for (auto& [id, entry] : entries_) {
    std::uint64_t offset = 0;
    if (!entry.may_send || entry.dropped ||
        !entry.attempt->log().Take(kLogChunkBytes, &offset, chunk->mutable_data())) {
      continue;
    }
    chunk->set_attempt_id(id);
    chunk->set_token(entry.attempt->assignment().token());
    chunk->set_offset(offset);
    return true;
  }
  return false;
}

bool Supervisor::Idle() {
  Reap();
  for (const auto& [id, entry] : entries_) {
    const Spool& spool = entry.attempt->spool();
    if (!entry.attempt->ended() || spool.acknowledged() < spool.last()) return false;
  }
  return true;
}

absl::Duration Supervisor::LongestEpoch() const {
  absl::Duration longest;
  for (const auto& [id, entry] : entries_) {
    if (!entry.attempt->ended()) longest = std::max(longest, entry.attempt->last_epoch());
  }
  return longest;
}

bool Supervisor::AllEnded() {
  for (const auto& [id, entry] : entries_) {
    if (!entry.attempt->ended()) return false;
  }
  return true;
}

}  // namespace pelab::agent
