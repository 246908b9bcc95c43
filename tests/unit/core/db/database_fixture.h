// A database with the real schema in a temporary directory, filled by SQL.
#pragma once

#include <SQLiteCpp/SQLiteCpp.h>

#include <cstdint>
#include <memory>
#include <string>

#include "core/stats/deposit.h"

namespace pelab::db {

struct JobForTest {
  std::string key;  // padded to 64 digits with zeros
  int generation = 1;
  std::string pe = "rope";
  std::string task = "distance";
  std::int64_t seed = 0;
  std::string state = "succeeded";
  int epochs = 2;
  std::string spec_json = "{}";
};

// Owns the directory. `db()` is a writing connection in WAL mode, like the coordinator's.
class DatabaseForTest {
 public:
  DatabaseForTest();
  ~DatabaseForTest();
  DatabaseForTest(const DatabaseForTest&) = delete;

  const std::string& path() const { return path_; }
  const std::string& directory() const { return directory_; }
  SQLite::Database& db() { return *db_; }
  void Execute(const std::string& sql) { db_->exec(sql); }
  void Close() { db_.reset(); }

  std::int64_t AddSweep(const std::string& name, const std::string& state = "active");
  std::int64_t AddJob(const JobForTest& job);
  void AddToSweep(std::int64_t sweep, int ordinal, std::int64_t job);
  std::int64_t AddAttempt(std::int64_t job, int number, int start_epoch,
                          const std::string& outcome);
  // Adds an epoch with test_correct of test_total 300, the same train_correct, and losses that tell
  // epochs apart.
  void AddEpoch(std::int64_t attempt, int epoch, int test_correct);
  // Sets the job's summary row as the store does at an epoch.
  void Summarize(std::int64_t job, int epochs_done, int correct, int best_correct, int total);
  // Adds a head ablation. Without a head, 10 * layer + head examples are lost (the drop) and none
  // gained; the loss goes from 0.5 to 0.5 + drop / 100. Chance is 0.1. The deposit indices are
  // those of core/stats.
  void AddHeadAblation(std::int64_t job, std::int64_t attempt, int layers, int heads,
                       int intact_correct, int total, const std::string& method = "zero");
  // Adds another analysis, of version 1 without parameters.
  void AddAnalysis(std::int64_t job, std::int64_t attempt, const std::string& name,
                   const std::string& result_json);
  void AddArtifact(std::int64_t attempt, const std::string& name, const std::string& sha256,
                   std::int64_t bytes);

 private:
  void AddIndices(std::int64_t analysis, const stats::AblationMatrix& matrix);

  std::string directory_;
  std::string path_;
  std::unique_ptr<SQLite::Database> db_;
};

}  // namespace pelab::db
