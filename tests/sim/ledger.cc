#include "tests/sim/ledger.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "core/state/state.h"
#include "tests/sim/ledger_rules.h"
#include "tests/sim/truth.h"

namespace pelab::sim {
namespace {

constexpr char kSilent[] = "reported nothing about it";
constexpr char kGone[] = " is gone: ";

// In the order of the enumeration.
constexpr const char* kStatuses[] = {"stored", "duplicate", "gap", "superseded"};

const char* NameOf(const v1::Event& event) {
  if (event.has_started()) return "started";
  if (event.has_epoch()) return "epoch";
  if (event.has_head_ablation()) return "matrix";
  if (event.has_finished()) return "end";
  return "file or analysis";
}

// News about an attempt: it has come further. A file may be sent again and again.
bool IsNews(const v1::Event& event) { return !event.has_artifact() && !event.has_checkpoint(); }

bool Changes(const store::ApplyResult& result) {
  if (!result.ok()) return false;
  if (const auto* event = std::get_if<store::EventStored>(&*result)) {
    return event->status == store::EventStored::kStored;
  }
  const auto* created = std::get_if<store::AttemptCreated>(&*result);
  return created == nullptr || created->assignment != nullptr;
}

}  // namespace

void Ledger::Counts::operator+=(const Counts& more) {
  events += more.events;
  duplicates += more.duplicates;
  gaps += more.gaps;
  superseded += more.superseded;
  successes += more.successes;
  lost += more.lost;
  starts += more.starts;
  found_unanswered += more.found_unanswered;
  controlled += more.controlled;
  retried += more.retried;
  extended += more.extended;
  drained += more.drained;
  packed += more.packed;
  lies += more.lies;
  foreign += more.foreign;
  broken += more.broken;
  silent += more.silent;
  requests_refused += more.requests_refused;
  gone += more.gone;
  fenced += more.fenced;
  losses += more.losses;
  old_hellos += more.old_hellos;
  with_files += more.with_files;
  recorded += more.recorded;
  rounds += more.rounds;
  put_aside += more.put_aside;
  sheets_played += more.sheets_played;
  changes_stale += more.changes_stale;
}

void Ledger::Applied(std::span<const store::Write> writes,
                     std::span<const store::ApplyResult> results, bool wrote) {
  // A batch that changes nothing writes nothing, so it does not decide the fate of a failed one.
  if (wrote && std::any_of(results.begin(), results.end(), Changes)) unknown_ = false;
  batches_ += 1;
  for (std::size_t i = 0; i < writes.size(); ++i) {
    if (!results[i].ok()) {
      Violate("a write was refused: ", std::string(results[i].status().message()));
      continue;
    }
    std::visit([&](const auto& write) { On(write, *results[i]); }, writes[i]);
  }
}

void Ledger::Unknown() {
  unknown_ = true;
  for (const std::int64_t sweep_id : extending_) sheets_of_claims_.Extended(sweep_id);
}

// A slot gets all its jobs in one batch, and no others before all of them have ended.
void Ledger::CheckSlot(const store::CreateAttempt& write) {
  bool joins = false;
  for (const auto& [id, other] : attempts_) {
    if (!other.open || other.worker_id != write.worker_id || other.slot != write.slot) continue;
    joins = true;
    if (other.batch == batches_) continue;
    Violate("slot ", write.slot, " of ", write.worker_id, " gets job ", write.job_id,
            " where attempt ", id, " has not ended");
  }
  counts_.packed += joins;
}

void Ledger::On(const store::CreateAttempt& write, const store::WriteResult& result) {
  const auto& created = std::get<store::AttemptCreated>(result);
  if (!created.assignment) return;
  const store::Assignment& assignment = *created.assignment;
  for (const auto& [id, other] : attempts_) {
    if (other.open && other.job_id == write.job_id) {
      Violate("job ", write.job_id, " has attempts ", id, " and ", assignment.attempt_id, " open");
    }
  }
  if (attempts_.count(assignment.attempt_id) != 0) {
    Violate("attempt ", assignment.attempt_id, " is there twice");
  }
  Note("attempt ", assignment.attempt_id, " of job ", write.job_id, " on ", write.worker_id,
       " slot ", write.slot);
  if (assignment.token != write.token) Violate("another token than the scheduler's");
  CheckSlot(write);
  Attempt& attempt = attempts_[assignment.attempt_id];
  attempt = {.job_id = write.job_id,
             .token = write.token,
             .analyses_only = assignment.weights.has_value(),
             .start_epoch = std::nullopt,
             .created = world_.Monotonic(),
             .decided = decided_[write.job_id],
             .worker_id = write.worker_id,
             .slot = write.slot,
             .batch = batches_};
  for (const store::Analysis& analysis : assignment.analyses) {
    attempt.asked.insert(NameOfAnalysis(analysis.name, analysis.version, analysis.parameters_json));
  }
  news_[{write.worker_id, write.slot}] = world_.Monotonic();
  Job& job = jobs_[write.job_id];
  job.key = assignment.key;
  job.epochs = EpochsOf(assignment.spec_json);
  if (job.successes > 0 && !assignment.weights) {
    Violate("job ", write.job_id, " is trained and is assigned to be trained again");
  }
  if (!assignment.weights && assignment.max_start_epoch != job.epochs_done) {
    Violate("attempt ", assignment.attempt_id, " may start at epoch ", assignment.max_start_epoch,
            " where ", job.epochs_done, " are stored");
  }
}

void Ledger::On(const store::AttemptEvent& write, const store::WriteResult& result) {
  const auto& stored = std::get<store::EventStored>(result);
  const v1::Event& event = *write.event;
  Note("event ", event.sequence(), " of attempt ", event.attempt_id(), ": ", NameOf(event), " ",
       kStatuses[stored.status], ", up to ", stored.acknowledged);
  if (Find(event.attempt_id(), event.token(), write.worker) == nullptr) {
    counts_.foreign += 1;
    if (stored.status != store::EventStored::kSuperseded || stored.change) {
      Violate("an event of no attempt of its worker (", event.attempt_id(), ") was not refused");
    }
    return;
  }
  Attempt& attempt = attempts_[event.attempt_id()];
  attempt.seen = true;
  switch (stored.status) {
    case store::EventStored::kStored:
      return OnStored(event, attempt, stored);
    case store::EventStored::kDuplicate:
    case store::EventStored::kGap:
      (stored.status == store::EventStored::kGap ? counts_.gaps : counts_.duplicates) += 1;
      if (stored.acknowledged != attempt.stored ||
          (stored.status == store::EventStored::kDuplicate) !=
              (event.sequence() <= attempt.stored)) {
        Violate("event ", event.sequence(), " of attempt ", event.attempt_id(),
                " is answered with ", stored.acknowledged, " where ", attempt.stored,
                " are stored");
      }
      return;
    case store::EventStored::kSuperseded:
      return OnRefused(event, attempt, stored);
  }
}

void Ledger::OnRefused(const v1::Event& event, Attempt& attempt, const store::EventStored& result) {
  counts_.superseded += 1;
  if (!attempt.open) return;
  if (Trusts(attempt.worker_id) || !result.change) {
    Violate("event ", event.sequence(), " of the open attempt ", event.attempt_id(),
            " was refused");
  }
  counts_.broken += 1;
  attempt.open = false;
  heard_.erase(event.attempt_id());
}

void Ledger::OnStored(const v1::Event& event, Attempt& attempt, const store::EventStored& result) {
  counts_.events += 1;
  if (!attempt.open) {
    Violate("event ", event.sequence(), " of attempt ", event.attempt_id(),
            " was stored after that was superseded");
  }
  if (event.sequence() != attempt.stored + 1) {
    Violate("event ", event.sequence(), " of attempt ", event.attempt_id(), " was stored after ",
            attempt.stored);
  }
  attempt.stored = event.sequence();
  if (IsNews(event)) news_[{attempt.worker_id, attempt.slot}] = world_.Monotonic();
  CheckBody(event, attempt);
  if (event.has_finished() != (result.change != nullptr)) {
    Violate("attempt ", event.attempt_id(),
            event.has_finished() ? " goes on after its end" : " ends");
  }
  if (!result.change) return;
  attempt.open = false;
  heard_.erase(event.attempt_id());
  Job& job = jobs_[attempt.job_id];
  if (result.change->outcome != state::Outcome::kSucceeded) return;
  counts_.successes += 1;
  if (job.epochs_done != job.epochs) {
    Violate("job ", attempt.job_id, " succeeds after ", job.epochs_done, " of ", job.epochs,
            " epochs");
  }
  if (!attempt.analyses_only && ++job.successes > 1) {
    Violate("job ", attempt.job_id, " was trained to its end twice");
  }
}

void Ledger::CheckBody(const v1::Event& event, Attempt& attempt) {
  Job& job = jobs_[attempt.job_id];
  const std::string broken = BrokenRule(event, {.epochs = job.epochs,
                                                .epochs_done = job.epochs_done,
                                                .analyses_only = attempt.analyses_only,
                                                .asked = attempt.asked,
                                                .shape = ShapeOf(job.key)});
  if (!broken.empty()) {
    Violate("event ", event.sequence(), " of attempt ", event.attempt_id(),
            " breaks a rule and was stored: ", broken);
  }
  if (event.has_started()) {
    const v1::Started& started = event.started();
    attempt.start_epoch = started.start_epoch();
    if (attempt.analyses_only) return;
    if (started.start_epoch() > job.epochs_done) {
      Violate("attempt ", event.attempt_id(), " starts at ", started.start_epoch(), " after ",
              job.epochs_done, " epochs");
    }
    job.epochs_done = started.start_epoch();
    if (!started.has_execution()) return;
    const int how = HowOf(started.execution().threads(), started.execution().packing());
    if (!job.how) job.how = how;
    if (*job.how != how) Violate("job ", attempt.job_id, " changes its threads or its packing");
  }
  if (event.has_epoch()) {
    const int epoch = event.epoch().epoch();
    if (attempt.analyses_only || !attempt.start_epoch || epoch != job.epochs_done) {
      Violate("epoch ", epoch, " of attempt ", event.attempt_id(), " follows ", job.epochs_done,
              " epochs of job ", attempt.job_id);
    }
    job.epochs_done = epoch + 1;
    attempt.epochs += 1;
    attempt.last_epoch = std::max(attempt.last_epoch, epoch);
    counts_.recorded += RecordedJobOf(job.key) != nullptr;
  }
  attempt.analyzed = attempt.analyzed || event.has_head_ablation() || event.has_analysis();
}

void Ledger::On(const store::EndAttempt& write, const store::WriteResult& result) {
  const auto& ended = std::get<store::EventStored>(result);
  const auto found = attempts_.find(write.attempt_id);
  if (found == attempts_.end() || !ended.change) return;
  Note("attempt ", write.attempt_id, " is given up: ", write.error);
  counts_.lost += 1;
  counts_.silent += absl::StrContains(write.error, kSilent);
  if (!found->second.open) Violate("attempt ", write.attempt_id, " ends twice");
  found->second.open = false;
  const auto loss = losses_.find(found->second.job_id);
  if (loss == losses_.end()) return;
  // A cancelled job counts nothing any more, and neither does one whose analyses were given up.
  if (ended.change->state != state::JobState::kQueued &&
      ended.change->state != state::JobState::kFailed) {
    losses_.erase(loss);
    return;
  }
  loss->second.ended = true;
  loss->second.advanced = Advanced(write.attempt_id);
}

// Whether the attempt has brought its job further than all others of the job.
bool Ledger::Advanced(std::int64_t attempt_id) const {
  const Attempt& attempt = attempts_.at(attempt_id);
  if (attempt.analyzed) return true;
  return attempt.last_epoch >= 0 &&
         std::none_of(attempts_.begin(), attempts_.end(), [&](const auto& entry) {
           const auto& [id, other] = entry;
           return id != attempt_id && other.job_id == attempt.job_id &&
                  other.last_epoch >= attempt.last_epoch;
         });
}

void Ledger::Heard(const std::string& worker_id, const v1::HeldAttempt& held) {
  const auto found = attempts_.find(held.attempt_id());
  if (found == attempts_.end() || found->second.token != held.token() ||
      found->second.worker_id != worker_id) {
    return;
  }
  found->second.seen = true;
  const absl::Duration now = world_.Monotonic();
  const auto [entry, is_first] =
      heard_.emplace(held.attempt_id(), Word{found->second.created, now});
  // After a late message the attempt may be lost already, or about to be.
  if (now - entry->second.last > bounds_.lease - scheduler_delay_) {
    entry->second.counted = now + scheduler_delay_;
  }
  entry->second.last = now;
}

// An attempt ends only because of what its own worker did or did not do.
void Ledger::GivesUp(const store::EndAttempt& write) {
  given_up_ += 1;
  const auto found = attempts_.find(write.attempt_id);
  if (found == attempts_.end()) return;
  Attempt& attempt = found->second;
  attempt.ending = true;
  if (absl::StrContains(write.error, kGone) && !attempt.seen &&
      write.event == state::Event::kLose) {
    Violate("attempt ", write.attempt_id, " counts as lost, and its worker never saw it");
  }
  if (absl::StrContains(write.error, "did not renew")) {
    CheckLease(write.attempt_id, attempt);
  } else if (absl::StrContains(write.error, kSilent)) {
    CheckSilence(write.attempt_id, attempt);
  } else if (Trusts(attempt.worker_id)) {
    const bool gave_up = absl::StrContains(write.error, "came back without it") && attempt.not_held;
    const bool unable = absl::StrContains(write.error, "came back and cannot run it: ") &&
                        were_old_.count(attempt.worker_id) != 0;
    const bool left = absl::EndsWith(write.error, " ended") && left_.count(attempt.worker_id) != 0;
    if (gave_up || unable || left || WasSaidGone(attempt, write.error)) return;
    Violate("attempt ", write.attempt_id, " is ended, but not by its worker ", attempt.worker_id,
            ": ", write.error);
  }
}

// Whether the worker was said to be gone after it had got the attempt, or while the attempt was
// being stored: then the worker has not come back since, as far as the scheduler may know.
bool Ledger::WasSaidGone(const Attempt& attempt, const std::string& error) const {
  const auto worker = workers_.find(attempt.worker_id);
  if (worker == workers_.end() || !absl::StrContains(error, kGone)) return false;
  const auto said = gone_.find(worker->second.first);
  if (said == gone_.end()) return false;
  const auto hello = hellos_.find(attempt.worker_id);
  return said->second >= attempt.decided || hello == hellos_.end() ||
         hello->second <= said->second || world_.Monotonic() - hello->second <= scheduler_delay_;
}

bool Ledger::IsNamed(const std::string& worker_id, const std::string& name) const {
  const auto worker = workers_.find(worker_id);
  return worker != workers_.end() && worker->second.first == name;
}

void Ledger::SaidGone(const std::string& name) {
  Note("worker ", name, " is said to be gone");
  counts_.gone += 1;
  gone_[name] = world_.Monotonic();
  given_up_before_ = given_up_;
}

// Every attempt of the worker that the scheduler knows must be on its way to its end, and the
// answer counts those whose end began with this report.
void Ledger::CheckGone(const std::string& name, int ended) {
  const std::uint64_t now = given_up_ - given_up_before_;
  counts_.fenced += now;
  if (static_cast<std::uint64_t>(ended) != now) {
    Violate("the report about worker ", name, " has ended ", now, " attempts, and says ", ended);
  }
  for (const auto& [id, attempt] : attempts_) {
    if (!attempt.open || !attempt.launched || attempt.ending) continue;
    if (IsNamed(attempt.worker_id, name)) {
      Violate("attempt ", id, " goes on although worker ", name, " is said to be gone");
    }
  }
}

void Ledger::CheckLease(std::int64_t attempt_id, const Attempt& attempt) {
  const auto heard = heard_.find(attempt_id);
  const absl::Duration now = world_.Monotonic();
  if (heard != heard_.end() && now < heard->second.counted) return;
  const absl::Duration last = heard == heard_.end() ? attempt.created : heard->second.last;
  if (now - last < bounds_.lease - scheduler_delay_) {
    Violate("attempt ", attempt_id, " is given up as lost ", absl::FormatDuration(now - last),
            " after it was heard of");
  }
}

void Ledger::CheckSilence(std::int64_t attempt_id, const Attempt& attempt) {
  if (!Trusts(attempt.worker_id)) return;  // it may say the same again and again
  absl::Duration last = attempt.created;
  const auto news = news_.find({attempt.worker_id, attempt.slot});
  if (news != news_.end()) last = std::max(last, news->second);
  const absl::Duration silent = world_.Monotonic() - last;
  if (silent < bounds_.silence) {
    Violate("attempt ", attempt_id, " is given up as silent ", absl::FormatDuration(silent),
            " after news about it");
  }
}

void Ledger::On(const store::WorkerHello& write, const store::WriteResult& result) {
  const auto& answers = std::get<store::WorkerStored>(result).held;
  Note(write.worker_id, " says hello, holding ", write.held.size());
  workers_[write.worker_id] = {write.name, write.host};
  hellos_[write.worker_id] = world_.Monotonic();
  std::set<std::int64_t> held;
  for (std::size_t i = 0; i < answers.size(); ++i) {
    const auto found = attempts_.find(write.held[i].attempt_id);
    const bool open = found != attempts_.end() && found->second.open &&
                      found->second.token == write.held[i].token &&
                      found->second.worker_id == write.worker_id;
    if (open) {
      held.insert(write.held[i].attempt_id);
      found->second.seen = true;
    }
    if (answers[i].accepted != open || (open && answers[i].acknowledged != found->second.stored)) {
      Violate("worker ", write.worker_id, " is told the wrong thing of attempt ",
              write.held[i].attempt_id);
    }
  }
  for (auto& [id, attempt] : attempts_) {
    if (attempt.worker_id == write.worker_id && held.count(id) == 0) attempt.not_held = true;
  }
}

void Ledger::On(const store::AppendLog& write, const store::WriteResult&) {
  counts_.foreign += Find(write.attempt_id, write.token, write.worker) == nullptr;
}

void Ledger::Told(const std::string& worker_id, std::int64_t attempt_id) {
  const auto found = attempts_.find(attempt_id);
  if (found != attempts_.end() && found->second.worker_id == worker_id) {
    found->second.launched = true;
    return;
  }
  Violate("worker ", worker_id, " is told about attempt ", attempt_id, ", which is not its own");
}

void Ledger::Acknowledged(std::int64_t attempt_id, std::uint64_t sequence) {
  Attempt& attempt = attempts_[attempt_id];
  attempt.acknowledged = std::max(attempt.acknowledged, sequence);
  if (sequence > attempt.stored) {
    Violate("event ", sequence, " of attempt ", attempt_id, " is acknowledged; ", attempt.stored,
            " are stored");
  }
}

const Ledger::Attempt* Ledger::Find(std::int64_t attempt_id, std::uint64_t token,
                                    const std::shared_ptr<const std::string>& worker) const {
  const auto found = attempts_.find(attempt_id);
  if (found == attempts_.end() || found->second.token != token) return nullptr;
  return worker == nullptr || found->second.worker_id == *worker ? &found->second : nullptr;
}

std::vector<Ledger::Known> Ledger::AttemptsOfOthers(const std::string& worker_id) const {
  std::vector<Known> known;
  for (const auto& [id, attempt] : attempts_) {
    if (attempt.worker_id == worker_id) continue;
    const auto job = jobs_.find(attempt.job_id);
    known.push_back({.attempt_id = id,
                     .token = attempt.token,
                     .stored = attempt.stored,
                     .epochs_done = job == jobs_.end() ? 0 : job->second.epochs_done,
                     .open = attempt.open});
  }
  return known;
}

std::int64_t Ledger::ExamplesOf(std::int64_t attempt_id) const {
  const auto attempt = attempts_.find(attempt_id);
  if (attempt == attempts_.end()) return kExamples;
  const auto job = jobs_.find(attempt->second.job_id);
  return job == jobs_.end() ? kExamples : ShapeOf(job->second.key).examples;
}

std::optional<Ledger::Open> Ledger::OpenInsteadOf(std::int64_t attempt_id) const {
  const auto found = attempts_.find(attempt_id);
  if (found == attempts_.end() || found->second.open) return std::nullopt;
  for (const auto& [id, other] : attempts_) {
    if (other.open && other.job_id == found->second.job_id) {
      return Open{id, other.token, other.stored + 1};
    }
  }
  return std::nullopt;
}

}  // namespace pelab::sim
