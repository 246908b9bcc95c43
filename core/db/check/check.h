// Looking after a database file: what it holds, and whether it is sound. Reads the file, never
// writes it; backup.h copies it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace SQLite {
class Database;
}

namespace pelab::db {

// Where the file with this content is kept, beside the database.
std::string ArtifactPath(const std::string& database, const std::string& sha256);

struct DatabaseInfo {
  std::string path;
  int schema_version = 0;
  std::int64_t bytes = 0;  // of the file and its write-ahead log
  std::int64_t sweeps = 0;
  std::int64_t jobs = 0;
  std::int64_t jobs_succeeded = 0;
  std::int64_t attempts = 0;
  std::int64_t epochs = 0;
  std::int64_t ablated_heads = 0;
  std::int64_t artifacts = 0;  // distinct files
  std::int64_t artifact_bytes = 0;
};
// Errors: those of Reader::Open.
absl::StatusOr<DatabaseInfo> ReadInfo(const std::string& path);

// One promise about the data, and where it does not hold.
struct Check {
  std::string name;                   // "curves of succeeded jobs are whole"
  std::vector<std::string> problems;  // at most kMaxProblems, one line each; empty: it holds
  std::vector<std::string> notes;     // worth knowing, but no harm: files that nothing names
};
inline constexpr int kMaxProblems = 20;

// SQLite's own integrity check, references, and pelab's invariants (invariants.cc): curves without
// gaps or repeats, summaries that agree with them, whole ablation matrices whose counts follow from
// each other, jobs that were trained once, states of jobs, attempts and sweeps that agree, artifacts
// that are there at their size. In one read transaction: it may be served meanwhile. Where the file
// itself is damaged nothing further is checked.
// Errors: those of Reader::Open.
absl::StatusOr<std::vector<Check>> CheckDatabase(const std::string& path);
// The same over a connection that is open already, but for the artifacts' files. Throws
// SQLite::Exception.
std::vector<Check> CheckConnection(SQLite::Database& db);

}  // namespace pelab::db
