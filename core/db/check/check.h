// Inspects a database file: counts what it holds and checks that it is sound. Reads the file and
// never writes it; backup.h copies it.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace SQLite {
class Database;
}

namespace pelab::db {

// The path of the file with this content, in the directory of artifacts beside the database.
// nullopt if the text is not a SHA-256: no file has that name.
std::optional<std::string> ArtifactPath(const std::string& database, const std::string& sha256);

struct DatabaseInfo {
  std::string path;
  int schema_version = 0;
  std::int64_t bytes = 0;  // size of the file and its write-ahead log (WAL)
  std::int64_t sweeps = 0;
  std::int64_t jobs = 0;
  std::int64_t jobs_succeeded = 0;
  std::int64_t attempts = 0;
  std::int64_t epochs = 0;
  std::int64_t ablated_heads = 0;
  std::int64_t artifacts = 0;  // distinct files
  std::int64_t artifact_bytes = 0;
};
// The errors are those of Reader::Open.
absl::StatusOr<DatabaseInfo> ReadInfo(const std::string& path);

// One invariant of the data, and the places where it is violated.
struct Check {
  std::string name;                   // "curves of succeeded jobs are whole"
  std::vector<std::string> problems;  // one line each, at most kMaxProblems; empty: no violation
  std::vector<std::string> notes;     // harmless remarks, such as files that no row refers to
};
inline constexpr int kMaxProblems = 20;

// Checks SQLite's own integrity, references, and pelab's invariants (invariants.cc): curves without
// gaps or repeats, summaries that agree with the curves, complete ablation matrices with consistent
// counts, jobs trained only once, consistent states of jobs, attempts and sweeps, and artifacts
// that exist with the right size. Runs in one read transaction; the database may be served
// meanwhile. If the file itself is damaged, nothing further is checked.
// CANCELLED soon after `stopped` returns true; otherwise the errors of Reader::Open.
absl::StatusOr<std::vector<Check>> CheckDatabase(const std::string& path,
                                                 const std::function<bool()>& stopped = {});
// The name of the check of the files that rows refer to, which comes last.
inline constexpr char kArtifactsCheck[] = "artifacts are there at their size";
// The same on an open connection, without the artifacts' files. Throws SQLite::Exception.
std::vector<Check> CheckConnection(SQLite::Database& db);

}  // namespace pelab::db
