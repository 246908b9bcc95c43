// The ledger's comparison with the database: after each start of the coordinator and at the end.
#include <SQLiteCpp/SQLiteCpp.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/base/utf8.h"
#include "core/db/check/check.h"
#include "core/state/state.h"
#include "server/store/database.h"
#include "tests/sim/ledger.h"
#include "tests/sim/ledger_rules.h"
#include "tests/sim/truth.h"

namespace pelab::sim {
namespace {

constexpr double kCompared = 0.25;  // the share of batches that are compared

SQLite::Statement Rows(store::Store& store, const char* sql) {
  return {store.database().connection(), sql};
}

std::set<std::string> AskedFor(const std::string& analyses_json) {
  std::set<std::string> asked;
  if (analyses_json == "[]") return asked;
  for (const auto& analysis : nlohmann::json::parse(analyses_json)) {
    asked.insert(NameOfAnalysis(analysis["name"], analysis["version"],
                                analysis["parameters_json"].get<std::string>()));
  }
  return asked;
}

// Everything that a request or an event may change, in a few sums.
std::string Fingerprint(store::Store& store) {
  SQLite::Statement row =
      Rows(store,
           "SELECT "
           "(SELECT printf('%d %d %d %d ', count(*), sum(last_sequence), count(outcome), "
           "count(start_epoch)) FROM attempts) || "
           "(SELECT printf('%d %d %d %d %s ', count(*), sum(epochs_done), sum(lost_attempts), "
           "sum(failed_attempts), group_concat(state)) FROM jobs) || "
           "(SELECT printf('%d %d %d ', count(*), sum(test_correct), sum(train_correct)) "
           "FROM stored_epochs) || "
           "(SELECT printf('%d %d ', count(*), sum(length(data))) FROM logs) || "
           "printf('%d %d %d %d %d ', (SELECT count(*) FROM analyses), "
           "(SELECT count(*) FROM artifacts), (SELECT count(*) FROM checkpoints), "
           "(SELECT count(*) FROM analysis_requests), (SELECT count(*) FROM submissions)) || "
           "coalesce((SELECT group_concat(printf('%d %s %d %d %d %d %s %s %s', sweep_id, state, "
           "priority, paused, deleted, cells, drop_from, client_token, extensions_json)) "
           "FROM sweeps), '') || "
           "coalesce((SELECT group_concat(printf('%s %s', worker_id, drain)) FROM workers), '') || "
           "printf(' %d %d %d', (SELECT count(*) FROM sheets), "
           "(SELECT count(*) + count(ended_at) FROM sheet_rounds), "
           "(SELECT count(*) FROM sheet_claims))");
  row.executeStep();
  return row.getColumn(0).getString();
}

}  // namespace

void Ledger::Applying(std::span<const store::Write> writes, store::Store& store) {
  before_.reset();
  NoteLosses(writes, store);
  NoteReopened(writes);
  const bool refused = std::all_of(writes.begin(), writes.end(),
                                   [this](const auto& write) { return MustBeRefused(write); });
  if (refused && dice_.Chance(kCompared)) before_ = Fingerprint(store);
}

void Ledger::CompareWithBefore(store::Store& store) {
  if (before_ && *before_ != Fingerprint(store)) {
    Violate("what must be refused has changed the database");
  }
  CheckLosses(store);
}

// Only batches in which nothing else may change a job's losses are checked.
void Ledger::NoteLosses(std::span<const store::Write> writes, store::Store& store) {
  losses_.clear();
  const bool only = std::all_of(writes.begin(), writes.end(), [](const store::Write& write) {
    const auto* event = std::get_if<store::AttemptEvent>(&write);
    return (event != nullptr && !event->event->has_finished()) ||
           std::holds_alternative<store::EndAttempt>(write) ||
           std::holds_alternative<store::CreateAttempt>(write) ||
           std::holds_alternative<store::WorkerHello>(write) ||
           std::holds_alternative<store::WorkerSeen>(write) ||
           std::holds_alternative<store::AppendLog>(write);
  });
  for (const store::Write& write : writes) {
    const auto* end = std::get_if<store::EndAttempt>(&write);
    const auto attempt = end == nullptr ? attempts_.end() : attempts_.find(end->attempt_id);
    if (!only || attempt == attempts_.end()) continue;
    SQLite::Statement row = Rows(store, "SELECT lost_attempts FROM jobs WHERE job_id = ?");
    row.bind(1, attempt->second.job_id);
    if (!row.executeStep()) continue;
    const Loss loss{.before = row.getColumn(0).getInt(), .event = end->event};
    if (!losses_.emplace(attempt->second.job_id, loss).second) return losses_.clear();
  }
}

// A lost attempt that brought its job further begins the job's count of losses anew. What its
// worker never saw is no loss.
void Ledger::CheckLosses(store::Store& store) {
  for (const auto& [job_id, loss] : losses_) {
    if (!loss.ended) continue;
    const int begin = loss.advanced ? 0 : loss.before;
    const int wanted = begin + (loss.event == state::Event::kLose ? 1 : 0);
    SQLite::Statement row = Rows(store, "SELECT lost_attempts FROM jobs WHERE job_id = ?");
    row.bind(1, job_id);
    counts_.losses += 1;
    if (row.executeStep() && row.getColumn(0).getInt() == wanted) continue;
    Violate("job ", job_id, " counts ", row.getColumn(0).getInt(), " lost attempts, not ", wanted);
  }
}

// After a start --------------------------------------------------------------------------------

void Ledger::Compare(store::Store& store) {
  counts_.starts += 1;
  const std::uint64_t before = Stored();
  CompareAttempts(store);
  CompareJobs(store);
  CompareSweeps(store);
  sheets_of_claims_.Compare(store, unknown_);
  if (unknown_ && Stored() > before) counts_.found_unanswered += 1;
  heard_.clear();
  news_.clear();
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
           "a.start_epoch, coalesce(c.stored, 0), a.worker_id, a.slot, a.analyses_json, "
           "coalesce(c.last_epoch, -1), "
           "EXISTS (SELECT 1 FROM analyses AS n WHERE n.attempt_id = a.attempt_id) "
           "FROM attempts AS a LEFT JOIN (SELECT attempt_id, count(*) AS stored, "
           "max(epoch) AS last_epoch FROM stored_epochs GROUP BY attempt_id) AS c "
           "USING (attempt_id)");
  while (rows.executeStep()) {
    Attempt attempt{.job_id = rows.getColumn(1).getInt64(),
                    .token = static_cast<std::uint64_t>(rows.getColumn(2).getInt64()),
                    .stored = static_cast<std::uint64_t>(rows.getColumn(3).getInt64()),
                    .epochs = rows.getColumn(6).getInt(),
                    .open = rows.getColumn(4).getInt() != 0,
                    .start_epoch = std::nullopt,
                    .worker_id = rows.getColumn(7).getString(),
                    .slot = rows.getColumn(8).getInt(),
                    .asked = AskedFor(rows.getColumn(9).getString()),
                    .launched = true,
                    .seen = rows.getColumn(3).getInt64() != 0,
                    .last_epoch = rows.getColumn(10).getInt(),
                    .analyzed = rows.getColumn(11).getInt() != 0};
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
    now.not_held = before.not_held;
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
                                "execution_json ->> '$.packing', epochs FROM jobs");
  std::map<std::int64_t, Job> found;
  while (rows.executeStep()) {
    Job job{.key = rows.getColumn(1).getString(),
            .epochs = rows.getColumn(6).getInt(),
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
  std::map<std::int64_t, Sweep> found;
  std::map<std::int64_t, std::string> states;
  SQLite::Statement rows =
      Rows(store,
           "SELECT s.sweep_id, s.client_token, s.state, n.request_sha256, s.priority, "
           "json_array_length(s.extensions_json) FROM sweeps AS s "
           "LEFT JOIN submissions AS n USING (client_token)");
  while (rows.executeStep()) {
    const std::int64_t id = rows.getColumn(0).getInt64();
    states[id] = rows.getColumn(2).getString();
    found[id] = {.token = rows.getColumn(1).getString(),
                 .request = rows.getColumn(3).getString(),
                 .priority = rows.getColumn(4).getInt(),
                 .extensions = rows.getColumn(5).getInt()};
  }
  for (const auto& [id, before] : known_) {
    Sweep& now = found[id];
    const bool same = now.token == before.token && now.priority == before.priority &&
                      now.extensions == before.extensions;
    if (!unknown_ && !same) Violate("sweep ", id, " has changed over a restart");
    if (now.token == before.token) now.request = before.request;
  }
  if (!unknown_ && found.size() > known_.size()) Violate("there is a sweep out of nothing");
  known_ = std::move(found);
  for (const auto& [id, token] : sweeps_) {
    const auto at = known_.find(id);
    if (at == known_.end() || at->second.token != token) {
      Violate("sweep ", id, " was acknowledged and is gone");
    }
  }
  for (const std::int64_t id : cancelled_) {
    if (states[id] != "cancelled") Violate("sweep ", id, " was cancelled and is ", states[id]);
  }
}

// At the end -----------------------------------------------------------------------------------

void Ledger::CheckEnd(store::Store& store, db::Reader& reader) {
  Compare(store);
  sheets_of_claims_.CheckEnd(reader, store);
  counts_.sheets_played = sheets_of_claims_.compared();
  for (const db::Check& check : db::CheckConnection(store.database().connection())) {
    for (const std::string& problem : check.problems) Violate(check.name, ": ", problem);
  }
  CheckCurves(store);
  CheckAnalyses(store);
  CheckTexts(store);
  CheckBudgets(store);
}

// What workers stored that do not lie is what training gives without faults; nobody can know more
// of the rest than that it keeps the rules.
void Ledger::CheckCurves(store::Store& store) {
  std::set<std::pair<std::int64_t, int>> doubtful;  // jobs and epochs
  if (!liars_.empty()) {
    SQLite::Statement stored = Rows(store,
                                    "SELECT a.job_id, c.epoch, a.worker_id "
                                    "FROM stored_epochs AS c JOIN attempts AS a USING (attempt_id) "
                                    "ORDER BY a.number");
    while (stored.executeStep()) {
      const std::pair at(stored.getColumn(0).getInt64(), stored.getColumn(1).getInt());
      if (Trusts(stored.getColumn(2).getString())) {
        doubtful.erase(at);
      } else {
        doubtful.insert(at);
      }
    }
  }
  SQLite::Statement rows = Rows(store,
                                "SELECT job_id, epoch, test_correct, train_correct, test_loss, "
                                "train_loss, test_total, train_total, learning_rate, seconds "
                                "FROM v_curves");
  while (rows.executeStep()) {
    const std::int64_t job_id = rows.getColumn(0).getInt64();
    const Job& job = jobs_[job_id];
    const int number = rows.getColumn(1).getInt();
    v1::Event event;
    v1::Epoch& epoch = *event.mutable_epoch();
    epoch.set_epoch(number);
    epoch.set_test_correct(rows.getColumn(2).getInt64());
    epoch.set_train_correct(rows.getColumn(3).getInt64());
    epoch.set_test_loss(rows.getColumn(4).getDouble());
    epoch.set_train_loss(rows.getColumn(5).getDouble());
    epoch.set_test_total(rows.getColumn(6).getInt64());
    epoch.set_train_total(rows.getColumn(7).getInt64());
    epoch.set_learning_rate(rows.getColumn(8).getDouble());
    epoch.set_seconds(rows.getColumn(9).getDouble());
    const std::string broken = BrokenRule(
        event,
        {.epochs = job.epochs, .epochs_done = number, .asked = {}, .shape = ShapeOf(job.key)});
    if (!broken.empty()) {
      Violate("epoch ", number, " of job ", job_id, " is stored and breaks a rule: ", broken);
    }
    if (doubtful.count({job_id, number}) != 0) continue;
    v1::Epoch wanted =
        TrainedEpoch(job.key, number, StateAfter(job.key, job.how.value_or(0), number + 1));
    wanted.clear_train_eval_correct();
    wanted.clear_train_eval_total();
    if (epoch.SerializeAsString() != wanted.SerializeAsString()) {
      Violate("epoch ", number, " of job ", job_id, " is not what training gives without faults");
    }
  }
}

void Ledger::CheckAnalyses(store::Store& store) {
  SQLite::Statement rows =
      Rows(store,
           "SELECT j.key, n.parameters_json, h.head, h.correct, n.job_id, "
           "a.worker_id, h.layer FROM analyses AS n JOIN jobs AS j USING (job_id) "
           "JOIN attempts AS a USING (attempt_id) "
           "JOIN head_ablation AS h USING (analysis_id)");
  while (rows.executeStep()) {
    if (!Trusts(rows.getColumn(5).getString())) continue;
    v1::Analysis asked;
    asked.set_parameters_json(rows.getColumn(1).getString());
    const v1::HeadAblation wanted = MatrixOf(rows.getColumn(0).getString(), asked);
    const int entry = rows.getColumn(6).getInt() * wanted.heads() + rows.getColumn(2).getInt();
    if (rows.getColumn(3).getInt64() != wanted.correct(entry)) {
      Violate("a matrix of job ", rows.getColumn(4).getInt64(), " is not its own");
    }
  }
}

// Whatever a worker sends, texts can be read and have an end, and logs are of their attempt.
void Ledger::CheckTexts(store::Store& store) {
  if (liars_.empty()) return;
  constexpr int kMostBytes = 20'000;
  SQLite::Statement texts =
      Rows(store,
           "SELECT error FROM attempts UNION ALL SELECT environment_json FROM attempts "
           "UNION ALL SELECT error FROM jobs UNION ALL SELECT warning FROM jobs "
           "UNION ALL SELECT name || host || version || slots_json FROM workers");
  while (texts.executeStep()) {
    const std::string text = texts.getColumn(0).getString();
    if (!IsUtf8(text)) Violate("a text is stored that is not UTF-8");
    if (text.size() > kMostBytes) Violate("a text of ", text.size(), " bytes is stored");
  }
  SQLite::Statement logs =
      Rows(store,
           "SELECT l.attempt_id, a.worker_id FROM logs AS l JOIN attempts AS a USING (attempt_id) "
           "WHERE instr(l.data, CAST('a lie' AS BLOB)) > 0");
  while (logs.executeStep()) {
    if (!Trusts(logs.getColumn(1).getString())) continue;
    Violate("the log of attempt ", logs.getColumn(0).getInt64(), " is not its worker's");
  }
}

void Ledger::CheckBudgets(store::Store& store) {
  const state::Budgets& budgets = bounds_.budgets;
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
