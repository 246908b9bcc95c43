#include "tests/unit/core/db/database_fixture.h"

#include <sqlite3.h>
#include <stdlib.h>

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <new>

#include "core/experiment/configuration.h"
#include "migrations/migrations.h"
#include "migrations/schema.h"

namespace pelab::db {
namespace {

std::string TemporaryDirectory() {
  std::string pattern = (std::filesystem::temp_directory_path() / "pelab-test-XXXXXX").string();
  if (mkdtemp(pattern.data()) == nullptr)
    throw std::filesystem::filesystem_error("mkdtemp " + pattern,
                                            std::error_code(errno, std::generic_category()));
  return pattern;
}

// The bytes of a database with the schema and no rows. Every migration runs once a process.
const std::string& EmptyFile() {
  static const std::string bytes = [] {
    SQLite::Database db(":memory:", SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE);
    for (const auto& migration : migrations::All()) db.exec(std::string(migration.sql));
    db.exec("PRAGMA application_id = " + std::to_string(migrations::kApplicationId));
    db.exec("PRAGMA user_version = " + std::to_string(migrations::NewestSchema()));
    sqlite3_int64 size = 0;
    unsigned char* const data = sqlite3_serialize(db.getHandle(), "main", &size, 0);
    if (data == nullptr) throw std::bad_alloc();
    std::string copy(reinterpret_cast<const char*>(data), static_cast<std::size_t>(size));
    sqlite3_free(data);
    return copy;
  }();
  return bytes;
}

// Keeps sweep_counts right, which the coordinator updates with every write. The triggers are
// temporary: they belong to the connection and are not in the file.
void KeepCounts(SQLite::Database& db) {
  auto keep = [&db, number = 0](const std::string& event, const std::string& sweeps) mutable {
    db.exec("CREATE TEMP TRIGGER keep_counts_" + std::to_string(++number) + " AFTER " + event +
            " BEGIN DELETE FROM sweep_counts WHERE sweep_id IN (" + sweeps +
            "); INSERT INTO sweep_counts (sweep_id, queued, assigned, running, succeeded, failed, "
            "cancelled, epochs, epochs_done, open_claims) SELECT c.sweep_id, "
            "sum(j.state = 'queued'), sum(j.state = 'assigned'), sum(j.state = 'running'), "
            "sum(j.state = 'succeeded'), sum(j.state = 'failed'), sum(j.state = 'cancelled'), "
            "sum(j.epochs), sum(j.epochs_done), sum(c.claimed = 1 AND s.state IN ('expanding', "
            "'active') AND j.state IN ('queued', 'assigned', 'running')) "
            "FROM sweep_jobs AS c JOIN jobs AS j USING (job_id) JOIN sweeps AS s USING (sweep_id) "
            "WHERE c.sweep_id IN (" +
            sweeps + ") GROUP BY c.sweep_id; END");
  };
  const std::string of_job = "SELECT sweep_id FROM sweep_jobs WHERE job_id = ";
  keep("UPDATE ON main.jobs", of_job + "NEW.job_id");
  keep("DELETE ON main.jobs", of_job + "OLD.job_id");
  keep("INSERT ON main.sweep_jobs", "NEW.sweep_id");
  keep("UPDATE ON main.sweep_jobs", "NEW.sweep_id");
  keep("DELETE ON main.sweep_jobs", "OLD.sweep_id");
  keep("UPDATE ON main.sweeps", "NEW.sweep_id");
}

}  // namespace

DatabaseForTest::DatabaseForTest()
    : directory_(TemporaryDirectory()), path_(directory_ + "/test.db") {
  std::ofstream(path_, std::ios::binary) << EmptyFile();
  db_ = std::make_unique<SQLite::Database>(path_, SQLite::OPEN_READWRITE);
  db_->exec("PRAGMA synchronous = OFF");  // no power loss happens here
  db_->exec("PRAGMA journal_mode = WAL");
  KeepCounts(*db_);
  db_->exec(
      "INSERT INTO workers (worker_id, host, version, slots_json, slots, capabilities_json, state, "
      "last_seen_at) VALUES ('w1', 'host-a', '0.1.0', '[]', 2, '{}', 'online', 1000)");
}

DatabaseForTest::~DatabaseForTest() {
  db_.reset();
  std::error_code ignored;
  std::filesystem::remove_all(directory_, ignored);
}

std::int64_t DatabaseForTest::AddSweep(const std::string& name, const std::string& state) {
  SQLite::Statement insert(
      *db_,
      "INSERT INTO sweeps (name, protocol, document, file_name, overrides_json, "
      "client_token, analyses_json, resources_json, priority, fresh, state, cells, "
      "expanded_cells, new_jobs, created_at) VALUES (?, 'clean', 'name: x', 'x.yaml', '[]', "
      "lower(hex(randomblob(16))), '[]', '{}', 0, 0, ?, 4, 4, 4, 5000)");
  insert.bind(1, name);
  insert.bind(2, state);
  insert.exec();
  return db_->getLastInsertRowid();
}

std::int64_t DatabaseForTest::AddJob(const JobForTest& job) {
  const std::string spec_template = experiment::TemplateOf(job.spec_json, job.seed);
  SQLite::Statement configuration(*db_,
                                  "INSERT OR IGNORE INTO configurations (template) VALUES (?)");
  configuration.bind(1, spec_template);
  configuration.exec();
  SQLite::Statement insert(
      *db_,
      "INSERT INTO jobs (key, generation, pe, pe_label, task, protocol, seed, device_kind, "
      "memory_bytes, state, epochs, attempts, created_at, trained, configuration_id) "
      "VALUES (?, ?, ?, ?3, ?, 'clean', ?, 'any', 0, ?6, ?, 1, 5000, ?6 = 'succeeded', "
      "(SELECT configuration_id FROM configurations WHERE template = ?))");
  insert.bind(1, job.key + std::string(64 - job.key.size(), '0'));
  insert.bind(2, job.generation);
  insert.bind(3, job.pe);
  insert.bind(4, job.task);
  insert.bind(5, job.seed);
  insert.bind(6, job.state);
  insert.bind(7, job.epochs);
  insert.bind(8, spec_template);
  insert.exec();
  return db_->getLastInsertRowid();
}

void DatabaseForTest::AddToSweep(std::int64_t sweep, int ordinal, std::int64_t job) {
  SQLite::Statement insert(*db_,
                           "INSERT INTO sweep_jobs (sweep_id, ordinal, job_id) VALUES (?, ?, ?)");
  insert.bind(1, sweep);
  insert.bind(2, ordinal);
  insert.bind(3, job);
  insert.exec();
}

std::int64_t DatabaseForTest::AddAttempt(std::int64_t job, int number, int start_epoch,
                                         const std::string& outcome) {
  SQLite::Statement insert(
      *db_,
      "INSERT INTO attempts (job_id, number, token, worker_id, slot, device, analyses_json, "
      "start_epoch, environment_json, outcome, started_at, ended_at) "
      "VALUES (?, ?, 1, 'w1', 0, 'cpu', '[]', ?, '{}', nullif(?4, ''), 6000, "
      "iif(?4 = '', NULL, 7000))");
  insert.bind(1, job);
  insert.bind(2, number);
  insert.bind(3, start_epoch);
  insert.bind(4, outcome);
  insert.exec();
  const std::int64_t id = db_->getLastInsertRowid();
  SQLite::Statement count(*db_, "UPDATE jobs SET attempts = max(attempts, ?) WHERE job_id = ?");
  count.bind(1, number);
  count.bind(2, job);
  count.exec();
  return id;
}

void DatabaseForTest::AddEpoch(std::int64_t attempt, int epoch, int test_correct) {
  SQLite::Statement insert(
      *db_,
      "INSERT INTO curves VALUES (?, ?, ?, ?4, 300, ?, ?4, 300, 1e-3 / 3, 0.1 + 0.2, NULL, NULL)");
  insert.bind(1, attempt);
  insert.bind(2, epoch);
  insert.bind(3, 1.0 / (epoch + 3));
  insert.bind(4, test_correct);
  insert.bind(5, 2.0 / (epoch + 3));
  insert.exec();
}

void DatabaseForTest::Summarize(std::int64_t job, int epochs_done, int correct, int best_correct,
                                int total) {
  SQLite::Statement update(
      *db_,
      "UPDATE jobs SET epochs_done = ?2, train_correct = ?3, train_total = ?5, "
      "test_correct = ?3, test_total = ?5, best_test_correct = ?4, best_test_total = ?5, "
      "wall_seconds = 1.5, device = 'cpu', train_loss = ?6, test_loss = ?7 WHERE job_id = ?1");
  update.bind(1, job);
  update.bind(2, epochs_done);
  update.bind(3, correct);
  update.bind(4, best_correct);
  update.bind(5, total);
  update.bind(6, 1.0 / (epochs_done + 2));  // the losses that AddEpoch gives the last epoch
  update.bind(7, 2.0 / (epochs_done + 2));
  update.exec();
}

void DatabaseForTest::AddHeadAblation(std::int64_t job, std::int64_t attempt, int layers, int heads,
                                      int intact_correct, int total, const std::string& method) {
  SQLite::Statement analysis(
      *db_,
      "INSERT INTO analyses (job_id, name, version, parameters_json, attempt_id, layers, "
      "heads, intact_correct, total, seconds, created_at, intact_nll, chance) "
      "VALUES (?, 'head_ablation', 2, "
      "json_object('data', 'test', 'hygiene', 'clean', 'method', ?, 'target', 'head'), "
      "?, ?, ?, ?, ?, 1, 1, 0.5, 0.1)");
  analysis.bind(1, job);
  analysis.bind(2, method);
  analysis.bind(3, attempt);
  analysis.bind(4, layers);
  analysis.bind(5, heads);
  analysis.bind(6, intact_correct);
  analysis.bind(7, total);
  analysis.exec();
  const std::int64_t id = db_->getLastInsertRowid();
  stats::AblationMatrix matrix{.layers = layers,
                               .heads = heads,
                               .entries = {},
                               .total = total,
                               .intact_correct = intact_correct,
                               .chance = 0.1};
  for (int layer = 0; layer < layers; ++layer) {
    for (int head = 0; head < heads; ++head) {
      const int drop = 10 * layer + head;
      matrix.entries.push_back(stats::PairedCounts{drop, 0});
      SQLite::Statement insert(*db_,
                               "INSERT INTO head_ablation VALUES (?, ?, ?, ?, ?, 0, ?, ?, 0.01)");
      insert.bind(1, id);
      insert.bind(2, layer);
      insert.bind(3, head);
      insert.bind(4, intact_correct - drop);
      insert.bind(5, drop);
      insert.bind(6, stats::Drop({drop, 0}, total).standard_error);
      insert.bind(7, 0.5 + drop / 100.0);
      insert.exec();
    }
  }
  AddIndices(id, matrix);
}

void DatabaseForTest::AddIndices(std::int64_t analysis, const stats::AblationMatrix& matrix) {
  const auto bind = [](SQLite::Statement& insert, int index, const auto& value) {
    if (value) insert.bind(index, *value);
  };
  for (const stats::DepositIndices& row : stats::IndicesOf(matrix)) {
    SQLite::Statement insert(
        *db_, "INSERT INTO deposit_indices VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)");
    insert.bind(1, analysis);
    insert.bind(2, row.layer.value_or(-1));
    bind(insert, 3, row.max_drop);
    bind(insert, 4, row.top_share);
    bind(insert, 5, row.top_ratio);
    bind(insert, 6, row.gini);
    bind(insert, 7, row.effective_heads);
    bind(insert, 8, row.top_layer);
    bind(insert, 9, row.top_head);
    if (row.deposit) insert.bind(10, *row.deposit ? 1 : 0);
    bind(insert, 11, row.deposits);
    insert.exec();
  }
}

void DatabaseForTest::AddAnalysis(std::int64_t job, std::int64_t attempt, const std::string& name,
                                  const std::string& result_json) {
  SQLite::Statement insert(
      *db_,
      "INSERT INTO analyses (job_id, name, version, parameters_json, attempt_id, seconds, "
      "result_json, created_at) VALUES (?, ?, 1, '{}', ?, 2.5, ?, 9000)");
  insert.bind(1, job);
  insert.bind(2, name);
  insert.bind(3, attempt);
  insert.bind(4, result_json);
  insert.exec();
}

void DatabaseForTest::AddArtifact(std::int64_t attempt, const std::string& name,
                                  const std::string& sha256, std::int64_t bytes) {
  SQLite::Statement insert(*db_, "INSERT INTO artifacts VALUES (?, ?, ?, ?)");
  insert.bind(1, attempt);
  insert.bind(2, name);
  insert.bind(3, sha256);
  insert.bind(4, bytes);
  insert.exec();
}

}  // namespace pelab::db
