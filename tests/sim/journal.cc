#include "tests/sim/journal.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "server/store/database.h"

namespace pelab::sim {
namespace {

double FromZero(double value) { return std::isfinite(value) && value >= 0 ? value : 1; }

// The event with each value of an epoch that breaks a rule replaced by one that does not.
std::shared_ptr<const v1::Event> MadeToFit(const v1::Event& event, std::int64_t examples) {
  auto fits = std::make_shared<v1::Event>(event);
  v1::Epoch& epoch = *fits->mutable_epoch();
  epoch.set_train_loss(FromZero(epoch.train_loss()));
  epoch.set_test_loss(FromZero(epoch.test_loss()));
  epoch.set_learning_rate(FromZero(epoch.learning_rate()));
  epoch.set_seconds(std::min(FromZero(epoch.seconds()), 1e9));
  epoch.set_train_total(examples);
  epoch.set_test_total(examples);
  epoch.set_train_correct(std::clamp<std::int64_t>(epoch.train_correct(), 0, examples));
  epoch.set_test_correct(std::clamp<std::int64_t>(epoch.test_correct(), 0, examples));
  return fits;
}

}  // namespace

const std::map<std::string, bool Planted::*>& PlantedByName() {
  static const auto* const names = new std::map<std::string, bool Planted::*>{
      {"no_fencing", &Planted::no_fencing},
      {"acknowledge_before_commit", &Planted::acknowledge_before_commit},
      {"no_lease_sweep", &Planted::no_lease_sweep},
      {"no_silence_sweep", &Planted::no_silence_sweep},
      {"believes_anybody", &Planted::believes_anybody},
      {"stores_unchecked", &Planted::stores_unchecked},
      {"ignores_requests", &Planted::ignores_requests},
      {"ignores_gone", &Planted::ignores_gone},
      {"believes_in_files", &Planted::believes_in_files},
      {"skips_seeds", &Planted::skips_seeds},
      {"widens_rounds", &Planted::widens_rounds},
      {"takes_late_rounds", &Planted::takes_late_rounds},
      {"misjudges", &Planted::misjudges}};
  return *names;
}

absl::Status SimJournal::Append(std::vector<store::Write> writes, Done done, Urgency urgency) {
  if (stopped_ || !*parts_.alive) return absl::UnavailableError("the coordinator is shutting down");
  Request request{std::move(writes), std::move(done)};
  for (const store::Write& write : request.writes) {
    request.bytes += store::ByteSize(write);
    if (const auto* end = std::get_if<store::EndAttempt>(&write)) parts_.ledger.GivesUp(*end);
    if (const auto* create = std::get_if<store::CreateAttempt>(&write)) {
      parts_.ledger.Decides(*create);
    }
  }
  if (urgency == Urgency::kBounded && HasWork() &&
      queued_bytes_ + request.bytes > parts_.max_queued_bytes) {
    return absl::ResourceExhaustedError("the coordinator has too many writes queued");
  }
  queued_bytes_ += request.bytes;
  const bool is_long = std::any_of(request.writes.begin(), request.writes.end(), store::IsLong);
  (is_long ? long_ : queue_).push_back(std::move(request));
  if (!busy_) {
    busy_ = true;
    parts_.world.After(parts_.world.Between(absl::ZeroDuration(), absl::Milliseconds(5)),
                       [this, alive = parts_.alive] {
                         if (*alive) Commit();
                       });
  }
  return absl::OkStatus();
}

std::vector<store::Write> SimJournal::Spoiled(const std::vector<store::Write>& writes) const {
  std::vector<store::Write> spoiled = writes;
  for (store::Write& write : spoiled) {
    auto* const event = std::get_if<store::AttemptEvent>(&write);
    if (event != nullptr && parts_.planted.believes_anybody) event->worker = nullptr;
    if (event != nullptr && parts_.planted.stores_unchecked && event->event->has_epoch()) {
      const std::int64_t examples = parts_.ledger.ExamplesOf(event->event->attempt_id());
      event->event = MadeToFit(*event->event, examples);
    }
    auto* const submission = std::get_if<store::SubmitSweep>(&write);
    if (submission != nullptr && parts_.planted.ignores_requests) {
      submission->request_sha256.clear();
    }
    auto* const begin = std::get_if<store::BeginRound>(&write);
    if (begin != nullptr && parts_.planted.takes_late_rounds && parts_.ledger.IsLate(*begin)) {
      begin->round = parts_.ledger.RoundsOf(begin->sheet_id) + 1;
      begin->seeds.seeds.clear();  // the sweep has them already
    }
    auto* const end = std::get_if<store::EndRound>(&write);
    if (end != nullptr && parts_.planted.takes_late_rounds && parts_.ledger.IsLate(*end)) {
      end->round = parts_.ledger.RoundsOf(end->sheet_id);
      for (v1::SheetClaimRow& claim : end->claims) claim.set_round(end->round);
    }
    if (end != nullptr && parts_.planted.misjudges) {
      v1::SheetClaimRow& claim = end->claims.front();
      claim.set_log_e_holds(claim.log_e_holds() + 1e-12);
    }
  }
  return spoiled;
}

// With the bug no_fencing, late events go to the attempt that replaced theirs, numbered as its next
// events.
absl::StatusOr<std::vector<store::ApplyResult>> SimJournal::Apply(
    const std::vector<store::Write>& writes) {
  const Planted& planted = parts_.planted;
  if (planted.believes_anybody || planted.stores_unchecked || planted.ignores_requests ||
      planted.takes_late_rounds || planted.misjudges) {
    return parts_.store.Apply(Spoiled(writes));
  }
  if (!planted.no_fencing) return parts_.store.Apply(writes);
  std::vector<store::Write> rewritten = writes;
  std::map<std::int64_t, std::uint64_t> next;
  for (store::Write& write : rewritten) {
    auto* write_event = std::get_if<store::AttemptEvent>(&write);
    if (write_event == nullptr) continue;
    const auto open = parts_.ledger.OpenInsteadOf(write_event->event->attempt_id());
    if (!open) continue;
    auto event = std::make_shared<v1::Event>(*write_event->event);
    event->set_attempt_id(open->attempt_id);
    event->set_token(open->token);
    event->set_sequence(next.emplace(open->attempt_id, open->sequence).first->second++);
    write_event->event = std::move(event);
    write_event->worker = nullptr;  // any worker
  }
  auto results = parts_.store.Apply(rewritten);
  if (!results.ok()) return results;
  for (std::size_t i = 0; i < writes.size(); ++i) {
    const auto* write = std::get_if<store::AttemptEvent>(&writes[i]);
    if (write == nullptr || !(*results)[i].ok()) continue;
    auto& stored = std::get<store::EventStored>(*(*results)[i]);
    if (stored.attempt_id == write->event->attempt_id()) continue;
    stored.attempt_id = write->event->attempt_id();
    stored.acknowledged = write->event->sequence();
  }
  return results;
}

std::vector<SimJournal::Answer> SimJournal::ApplyBatch(std::deque<Request> batch) {
  std::vector<store::Write> writes;
  for (Request& request : batch) {
    writes.insert(writes.end(), request.writes.begin(), request.writes.end());
  }
  parts_.ledger.Applying(writes, parts_.store);
  const SQLite::Database& database = parts_.store.database().connection();
  const int changes = database.getTotalChanges();
  const auto results = Apply(writes);
  if (results.ok() && !parts_.vfs.down()) {
    parts_.ledger.Applied(writes, *results, database.getTotalChanges() != changes);
    parts_.ledger.CompareWithBefore(parts_.store);
  } else {
    parts_.ledger.Unknown();
  }
  parts_.world.Note("commit of ", writes.size(), results.ok() ? "" : " fails");
  std::vector<Answer> answers;
  std::size_t at = 0;
  for (Request& request : batch) {
    answers.push_back({std::move(request.done), absl::UnknownError("")});
    if (results.ok()) {
      answers.back().results = std::vector<store::ApplyResult>(
          results->begin() + at, results->begin() + at + request.writes.size());
    } else {
      answers.back().results = results.status();
    }
    at += request.writes.size();
  }
  return answers;
}

void SimJournal::Tell(std::vector<Answer> answers) {
  for (Answer& answer : answers) answer.done(std::move(answer.results));
}

std::deque<SimJournal::Request> SimJournal::TakeBatch(std::size_t most) {
  std::deque<Request> batch;
  const auto take = [&](std::deque<Request>& from) {
    queued_bytes_ -= from.front().bytes;
    batch.push_back(std::move(from.front()));
    from.pop_front();
  };
  while (!queue_.empty() && batch.size() < most) take(queue_);
  if (!long_.empty()) take(long_);
  return batch;
}

void SimJournal::Commit() {
  std::deque<Request> batch = TakeBatch(parts_.batch);
  const bool early = parts_.planted.acknowledge_before_commit;
  if (early) before_ = parts_.vfs.Save();
  std::vector<Answer> answers = ApplyBatch(std::move(batch));
  if (parts_.vfs.down()) return parts_.died();
  if (early) {
    Tell(std::move(answers));
    answers.clear();
  }
  const absl::Duration takes = *parts_.disk * (0.5 + parts_.world.Unit());
  parts_.world.After(takes, [this, alive = parts_.alive,
                             answers = std::make_shared<std::vector<Answer>>(std::move(answers))] {
    if (!*alive) return;
    before_.reset();
    Tell(std::move(*answers));
    Finish();
  });
}

void SimJournal::Finish() {
  if (parts_.world.Chance(0.02)) {
    parts_.store.Checkpoint(/*truncate=*/parts_.world.Chance(0.2));
    if (parts_.vfs.down()) return parts_.died();
  }
  busy_ = false;
  if (!HasWork() || stopped_) return;
  busy_ = true;
  parts_.world.After(absl::ZeroDuration(), [this, alive = parts_.alive] {
    if (*alive) Commit();
  });
}

void SimJournal::Stop() {
  while (HasWork()) {
    std::vector<Answer> answers = ApplyBatch(TakeBatch(queue_.size()));
    if (parts_.vfs.down()) return;
    Tell(std::move(answers));
  }
  stopped_ = true;
  parts_.store.Checkpoint(/*truncate=*/true);
}

}  // namespace pelab::sim
