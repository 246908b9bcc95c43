#include "tests/sim/ledger.h"

#include <SQLiteCpp/SQLiteCpp.h>

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "core/db/check/check.h"
#include "core/state/state.h"
#include "server/store/database.h"
#include "tests/sim/truth.h"

namespace pelab::sim {
namespace {

// In the order of the enumeration.
constexpr const char* kStatuses[] = {"stored", "duplicate", "gap", "superseded"};

const char* NameOf(const v1::Event& event) {
  if (event.has_started()) return "started";
  if (event.has_epoch()) return "epoch";
  if (event.has_head_ablation()) return "matrix";
  if (event.has_finished()) return "end";
  return "file or analysis";
}

SQLite::Statement Rows(store::Store& store, const char* sql) {
  return {store.database().connection(), sql};
}

bool Changes(const store::ApplyResult& result) {
  if (!result.ok()) return false;
  if (const auto* event = std::get_if<store::EventStored>(&*result)) {
    return event->status == store::EventStored::kStored;
  }
  const auto* created = std::get_if<store::AttemptCreated>(&*result);
  return created == nullptr || created->assignment.has_value();
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
}

void Ledger::Applied(std::span<const store::Write> writes,
                     std::span<const store::ApplyResult> results) {
  // A batch that changes nothing writes nothing, so it does not decide the fate of a failed one.
  if (std::any_of(results.begin(), results.end(), Changes)) unknown_ = false;
  batches_ += 1;
  for (std::size_t i = 0; i < writes.size(); ++i) {
    if (!results[i].ok()) {
      Violate("a write was refused: ", std::string(results[i].status().message()));
      continue;
    }
    std::visit([&](const auto& write) { On(write, *results[i]); }, writes[i]);
  }
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
  attempts_[assignment.attempt_id] = {.job_id = write.job_id,
                                      .token = write.token,
                                      .analyses_only = assignment.weights.has_value(),
                                      .start_epoch = std::nullopt,
                                      .created = world_.Monotonic(),
                                      .worker_id = write.worker_id,
                                      .slot = write.slot,
                                      .batch = batches_};
  Job& job = jobs_[write.job_id];
  job.key = assignment.key;
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
  const auto found = attempts_.find(event.attempt_id());
  if (found == attempts_.end() || found->second.token != event.token()) {
    if (stored.status != store::EventStored::kSuperseded) {
      Violate("an event of no attempt (", event.attempt_id(), ") was not refused");
    }
    return;
  }
  Attempt& attempt = found->second;
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
      counts_.superseded += 1;
      if (attempt.open) {
        Violate("event ", event.sequence(), " of the open attempt ", event.attempt_id(),
                " was refused");
      }
      return;
  }
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
  CheckBody(event, attempt);
  if (event.has_finished() != result.change.has_value()) {
    Violate("attempt ", event.attempt_id(),
            event.has_finished() ? " goes on after its end" : " ends");
  }
  if (!result.change) return;
  attempt.open = false;
  heard_.erase(event.attempt_id());
  Job& job = jobs_[attempt.job_id];
  if (result.change->outcome != state::Outcome::kSucceeded) return;
  counts_.successes += 1;
  if (!attempt.analyses_only && ++job.successes > 1) {
    Violate("job ", attempt.job_id, " was trained to its end twice");
  }
}

void Ledger::CheckBody(const v1::Event& event, Attempt& attempt) {
  Job& job = jobs_[attempt.job_id];
  if (event.has_started()) {
    const v1::Started& started = event.started();
    attempt.start_epoch = started.start_epoch();
    if (attempt.analyses_only) return;
    if (started.start_epoch() > job.epochs_done) {
      Violate("attempt ", event.attempt_id(), " starts at ", started.start_epoch(), " after ",
              job.epochs_done, " epochs");
    }
    job.epochs_done = started.start_epoch();
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
  }
}

void Ledger::On(const store::EndAttempt& write, const store::WriteResult& result) {
  const auto& ended = std::get<store::EventStored>(result);
  const auto found = attempts_.find(write.attempt_id);
  if (found == attempts_.end() || !ended.change) return;
  Note("attempt ", write.attempt_id, " is given up: ", write.error);
  counts_.lost += 1;
  if (!found->second.open) Violate("attempt ", write.attempt_id, " ends twice");
  found->second.open = false;
}

void Ledger::Heard(std::int64_t attempt_id) {
  const auto found = attempts_.find(attempt_id);
  if (found == attempts_.end()) return;
  const absl::Duration now = world_.Monotonic();
  const auto [entry, is_first] = heard_.emplace(attempt_id, Word{found->second.created, now});
  // After a late message the attempt may be lost already, or about to be.
  if (now - entry->second.last > lease_ - scheduler_delay_) {
    entry->second.counted = now + scheduler_delay_;
  }
  entry->second.last = now;
}

void Ledger::GivesUp(const store::EndAttempt& write) {
  const auto found = attempts_.find(write.attempt_id);
  if (found == attempts_.end() || !absl::StrContains(write.error, "did not renew")) return;
  const auto heard = heard_.find(write.attempt_id);
  const absl::Duration now = world_.Monotonic();
  if (heard != heard_.end() && now < heard->second.counted) return;
  const absl::Duration last = heard == heard_.end() ? found->second.created : heard->second.last;
  if (now - last < lease_ - scheduler_delay_) {
    Violate("attempt ", write.attempt_id, " is given up as lost ", absl::FormatDuration(now - last),
            " after it was heard of");
  }
}

void Ledger::On(const store::WorkerHello& write, const store::WriteResult& result) {
  const auto& answers = std::get<store::WorkerStored>(result).held;
  Note(write.worker_id, " says hello, holding ", write.held.size());
  for (std::size_t i = 0; i < answers.size(); ++i) {
    const auto found = attempts_.find(write.held[i].attempt_id);
    const bool open = found != attempts_.end() && found->second.open &&
                      found->second.token == write.held[i].token;
    if (answers[i].accepted != open || (open && answers[i].acknowledged != found->second.stored)) {
      Violate("worker ", write.worker_id, " is told the wrong thing of attempt ",
              write.held[i].attempt_id);
    }
  }
}

void Ledger::Superseded(const store::SliceStored& slice) {
  for (const std::int64_t id : slice.superseded) attempts_[id].open = false;
}
void Ledger::On(const store::SubmitSweep&, const store::WriteResult& result) {
  Superseded(std::get<store::SweepStored>(result).first);
}
void Ledger::On(const store::ExpandSlice&, const store::WriteResult& result) {
  Superseded(std::get<store::SliceStored>(result));
}
void Ledger::On(const store::Analyze&, const store::WriteResult& result) {
  Superseded(std::get<store::Analyzed>(result).jobs);
}
void Ledger::On(const store::RetrySlice&, const store::WriteResult& result) {
  const auto& retried = std::get<store::Retried>(result);
  counts_.retried += static_cast<std::uint64_t>(retried.queued);
  Superseded(retried.jobs);
}
void Ledger::On(const store::RetryJob&, const store::WriteResult& result) {
  const auto& retried = std::get<store::Retried>(result);
  counts_.retried += static_cast<std::uint64_t>(retried.queued);
  Superseded(retried.jobs);
}
void Ledger::On(const store::ControlSweep&, const store::WriteResult& result) {
  counts_.controlled += std::get<store::SweepControlled>(result).changed;
}
void Ledger::On(const store::ExtendSweep& write, const store::WriteResult& result) {
  const bool applied = std::get<store::SweepExtended>(result).applied;
  counts_.extended += applied;
  if (applied && cancelled_.count(write.sweep_id) != 0) {
    Violate("sweep ", write.sweep_id, " is cancelled and was extended");
  }
}
void Ledger::On(const store::DrainWorker&, const store::WriteResult& result) {
  counts_.drained += std::get<store::WorkerDrained>(result).changed;
}

void Ledger::Acknowledged(std::int64_t attempt_id, std::uint64_t sequence) {
  Attempt& attempt = attempts_[attempt_id];
  attempt.acknowledged = std::max(attempt.acknowledged, sequence);
  if (sequence > attempt.stored) {
    Violate("event ", sequence, " of attempt ", attempt_id, " is acknowledged; ", attempt.stored,
            " are stored");
  }
}

void Ledger::AcknowledgedSweep(std::int64_t sweep_id, const std::string& client_token) {
  const auto [entry, is_new] = sweeps_.emplace(sweep_id, client_token);
  if (!is_new && entry->second != client_token) {
    Violate("sweep ", sweep_id, " is the answer to two submissions");
  }
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

// After a start --------------------------------------------------------------------------------

void Ledger::Compare(store::Store& store) {
  counts_.starts += 1;
  const std::uint64_t before = Stored();
  CompareAttempts(store);
  CompareJobs(store);
  CompareSweeps(store);
  if (unknown_ && Stored() > before) counts_.found_unanswered += 1;
  heard_.clear();
  for (auto& [id, attempt] : attempts_) attempt.created = world_.Monotonic();
  unknown_ = false;
}

std::uint64_t Ledger::Stored() const {
  std::uint64_t sum = attempts_.size();
  for (const auto& [id, attempt] : attempts_) sum += attempt.stored;
  return sum;
}

void Ledger::CompareAttempts(store::Store& store) {
  std::map<std::int64_t, Attempt> found;
  SQLite::Statement rows =
      Rows(store,
           "SELECT a.attempt_id, a.job_id, a.token, a.last_sequence, a.outcome IS NULL, "
           "a.start_epoch, coalesce(c.stored, 0), a.worker_id, a.slot FROM attempts AS a LEFT JOIN "
           "(SELECT attempt_id, "
           "count(*) AS stored FROM stored_epochs GROUP BY attempt_id) AS c USING (attempt_id)");
  while (rows.executeStep()) {
    Attempt attempt{.job_id = rows.getColumn(1).getInt64(),
                    .token = static_cast<std::uint64_t>(rows.getColumn(2).getInt64()),
                    .stored = static_cast<std::uint64_t>(rows.getColumn(3).getInt64()),
                    .epochs = rows.getColumn(6).getInt(),
                    .open = rows.getColumn(4).getInt() != 0,
                    .start_epoch = std::nullopt,
                    .worker_id = rows.getColumn(7).getString(),
                    .slot = rows.getColumn(8).getInt()};
    if (!rows.getColumn(5).isNull()) attempt.start_epoch = rows.getColumn(5).getInt();
    found[rows.getColumn(0).getInt64()] = attempt;
  }
  for (auto& [id, before] : attempts_) {
    const auto at = found.find(id);
    if (at == found.end()) {
      Violate("attempt ", id, " was stored and is gone");
      continue;
    }
    Attempt& now = at->second;
    if (now.stored < before.acknowledged) {
      Violate("event ", before.acknowledged, " of attempt ", id, " was acknowledged; after the ",
              "restart ", now.stored, " are stored");
    } else if (now.stored < before.stored || now.epochs < before.epochs) {
      Violate("events of attempt ", id, " that were stored are gone");
    }
    const bool same = now.stored == before.stored && now.open == before.open;
    if (!unknown_ && !same) Violate("attempt ", id, " has changed over a restart");
    if (now.open && !before.open) Violate("attempt ", id, " had ended and is open again");
    now.acknowledged = before.acknowledged;
    now.analyses_only = before.analyses_only;
  }
  if (!unknown_ && found.size() > attempts_.size()) Violate("there is an attempt out of nothing");
  for (auto& [id, attempt] : found) {
    if (attempts_.count(id) != 0) continue;
    const auto job = jobs_.find(attempt.job_id);
    attempt.analyses_only = job != jobs_.end() && job->second.successes > 0;
  }
  attempts_ = std::move(found);
}

void Ledger::CompareJobs(store::Store& store) {
  SQLite::Statement rows = Rows(store,
                                "SELECT job_id, key, epochs_done, trained, "
                                "execution_json ->> '$.threads', "
                                "execution_json ->> '$.packing' FROM jobs");
  std::map<std::int64_t, Job> found;
  while (rows.executeStep()) {
    Job job{.key = rows.getColumn(1).getString(),
            .epochs_done = rows.getColumn(2).getInt(),
            .successes = rows.getColumn(3).getInt(),
            .how = std::nullopt};
    if (!rows.getColumn(4).isNull()) {
      job.how = HowOf(rows.getColumn(4).getInt(), rows.getColumn(5).getInt());
    }
    found[rows.getColumn(0).getInt64()] = job;
  }
  for (const auto& [id, before] : jobs_) {
    const auto at = found.find(id);
    if (at == found.end()) {
      Violate("job ", id, " was stored and is gone");
      continue;
    }
    if (at->second.successes < before.successes) Violate("job ", id, " is not trained any more");
    if (!unknown_ && at->second.epochs_done != before.epochs_done) {
      Violate("job ", id, " had ", before.epochs_done, " epochs; after the restart ",
              at->second.epochs_done);
    }
  }
  jobs_ = std::move(found);
}

void Ledger::CompareSweeps(store::Store& store) {
  std::map<std::int64_t, std::pair<std::string, std::string>> found;
  SQLite::Statement rows = Rows(store, "SELECT sweep_id, client_token, state FROM sweeps");
  while (rows.executeStep()) {
    found[rows.getColumn(0).getInt64()] = {rows.getColumn(1).getString(),
                                           rows.getColumn(2).getString()};
  }
  for (const auto& [id, token] : sweeps_) {
    const auto at = found.find(id);
    if (at == found.end() || at->second.first != token) {
      Violate("sweep ", id, " was acknowledged and is gone");
    }
  }
  for (const std::int64_t id : cancelled_) {
    const std::string& state = found[id].second;
    if (state != "cancelled") Violate("sweep ", id, " was cancelled and is ", state);
  }
}

// At the end -----------------------------------------------------------------------------------

void Ledger::CheckEnd(store::Store& store) {
  Compare(store);
  for (const db::Check& check : db::CheckConnection(store.database().connection())) {
    for (const std::string& problem : check.problems) Violate(check.name, ": ", problem);
  }
  CheckCurves(store);
  CheckAnalyses(store);
  CheckBudgets(store);
}

void Ledger::CheckCurves(store::Store& store) {
  SQLite::Statement rows = Rows(store,
                                "SELECT job_id, epoch, test_correct, test_total, train_correct, "
                                "test_loss FROM v_curves");
  while (rows.executeStep()) {
    const std::int64_t job_id = rows.getColumn(0).getInt64();
    const Job& job = jobs_[job_id];
    const int epoch = rows.getColumn(1).getInt();
    const std::uint64_t state = StateAfter(job.key, job.how.value_or(0), epoch + 1);
    const v1::Epoch wanted = EpochOf(epoch, state);
    if (rows.getColumn(2).getInt64() != wanted.test_correct() ||
        rows.getColumn(4).getInt64() != wanted.train_correct() ||
        rows.getColumn(5).getDouble() != wanted.test_loss()) {
      Violate("epoch ", epoch, " of job ", job_id, " is not what training gives without faults");
    }
  }
}

void Ledger::CheckAnalyses(store::Store& store) {
  SQLite::Statement rows = Rows(store,
                                "SELECT j.key, n.parameters_json, h.head, h.correct, n.job_id "
                                "FROM analyses AS n JOIN jobs AS j USING (job_id) "
                                "JOIN head_ablation AS h USING (analysis_id)");
  while (rows.executeStep()) {
    const std::int64_t lost = LostOf(rows.getColumn(0).getString(), rows.getColumn(1).getString(),
                                     rows.getColumn(2).getInt());
    if (rows.getColumn(3).getInt64() != 500 - lost) {
      Violate("a matrix of job ", rows.getColumn(4).getInt64(), " is not its own");
    }
  }
}

void Ledger::CheckBudgets(store::Store& store) {
  const state::Budgets budgets;
  SQLite::Statement rows = Rows(
      store,
      "SELECT j.job_id, j.state, j.lost_attempts, j.failed_attempts, j.trained, "
      "(SELECT a.error_kind FROM attempts AS a WHERE a.job_id = j.job_id ORDER BY a.number DESC "
      "LIMIT 1) FROM jobs AS j");
  while (rows.executeStep()) {
    const std::int64_t id = rows.getColumn(0).getInt64();
    const std::string state = rows.getColumn(1).getString();
    const int lost = rows.getColumn(2).getInt();
    const int failed = rows.getColumn(3).getInt();
    const auto kind = state::ParseErrorKind(rows.getColumn(5).getString());
    if (lost > budgets.lost || failed > budgets.failed) {
      Violate("job ", id, " has lost ", lost, " and failed ", failed, " attempts");
    }
    const bool spent = lost >= budgets.lost || failed >= budgets.failed;
    if (state == "failed" && !spent && (!kind || state::IsRetryable(*kind))) {
      Violate("job ", id, " has failed after ", lost, " lost and ", failed, " failed attempts");
    }
    if (state == "queued" || state == "assigned" || state == "running") {
      Violate("job ", id, " is still ", state);
    }
  }
}

}  // namespace pelab::sim
