#include "core/db/check/check.h"

#include <sqlite3.h>

#include <filesystem>
#include <map>
#include <system_error>

#include "core/access/audit_chain.h"
#include "core/base/sha256.h"
#include "core/base/strings.h"
#include "core/base/utf8.h"
#include "core/db/check/invariants.h"
#include "core/db/connection.h"
#include "core/db/raw_statement.h"
#include "core/db/row_columns.h"
#include "migrations/sqlite_message.h"

namespace pelab::db {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMaxProblemBytes = 1000;  // a line can quote a damaged file

std::int64_t FileBytes(const std::string& path) {
  std::error_code error;
  const auto size = fs::file_size(path, error);
  return error ? 0 : static_cast<std::int64_t>(size);
}

Check RunInvariant(SQLite::Database& db, const Invariant& invariant) {
  Check check{invariant.name, {}};
  SQLite::Statement query(db, invariant.sql);
  while (check.problems.size() < kMaxProblems && query.executeStep()) {
    check.problems.push_back(query.getColumn(0).getString());
  }
  return check;
}

// While it exists, queries of the connection end with an error once `stopped` returns true.
class Interruption {
 public:
  Interruption(SQLite::Database& db, const std::function<bool()>& stopped) : db_(db) {
    if (!stopped) return;
    constexpr int kInstructions = 100'000;  // of SQLite's virtual machine; a few milliseconds
    sqlite3_progress_handler(
        db_.getHandle(), kInstructions,
        [](void* asked) { return (*static_cast<const std::function<bool()>*>(asked))() ? 1 : 0; },
        const_cast<std::function<bool()>*>(&stopped));
  }
  ~Interruption() { sqlite3_progress_handler(db_.getHandle(), 0, nullptr, nullptr); }
  Interruption(const Interruption&) = delete;

 private:
  SQLite::Database& db_;
};

// If a page cannot be read at all, SQLite's own check ends with an exception.
Check CheckIntegrity(SQLite::Database& db) {
  Check check{"the file is a sound SQLite database", {}};
  try {
    SQLite::Statement query(db, Concat("PRAGMA integrity_check(", kMaxProblems, ")"));
    while (query.executeStep()) {
      if (const std::string line = query.getColumn(0).getString(); line != "ok")
        check.problems.push_back(Shorten(line, kMaxProblemBytes));
    }
  } catch (const SQLite::Exception& error) {
    check.problems.push_back(migrations::MessageOf(error));
  }
  return check;
}

Check CheckReferences(SQLite::Database& db) {
  Check check{"references lead somewhere", {}};
  SQLite::Statement query(db, "PRAGMA foreign_key_check");
  while (check.problems.size() < kMaxProblems && query.executeStep()) {
    check.problems.push_back(Concat(query.getColumn(0).getString(), " refers to a row of ",
                                    query.getColumn(2).getString(), " that is not there"));
  }
  return check;
}

// The rows of the audit table name each other by their hashes (core/access/audit_chain.h).
Check CheckAudit(SQLite::Database& db) {
  Check check{"the record of acts is as it was written", {}};
  std::string previous(access::kAuditStart);
  std::int64_t expected = 1;
  const RowColumns& columns = ColumnsOf<v1::AuditRow>();
  RawStatement query(db, Concat("SELECT ", columns.sql(), " FROM v_audit ORDER BY audit_id"));
  for (; check.problems.size() < kMaxProblems && query.Step(); ++expected) {
    v1::AuditRow row;
    columns.Read(query, row);
    if (row.audit_id() != expected) {
      check.problems.push_back(Concat("row ", expected, " of audit is missing"));
      expected = row.audit_id();
    } else if (access::AuditHash(previous, row) != row.sha256()) {
      check.problems.push_back(
          Concat("row ", row.audit_id(), " of audit is not as it was written"));
    }
    previous = row.sha256();
  }
  return check;
}

bool IsReferred(SQLite::Database& db, const std::string& sha256) {
  SQLite::Statement query(
      db,
      "SELECT EXISTS (SELECT 1 FROM artifacts WHERE sha256 = ?1) OR EXISTS (SELECT 1 FROM "
      "checkpoints WHERE sha256 = ?1) OR EXISTS (SELECT 1 FROM uploads WHERE sha256 = ?1) OR "
      "EXISTS (SELECT 1 FROM files WHERE sha256 = ?1)");
  query.bind(1, sha256);
  return query.executeStep() && query.getColumn(0).getInt() != 0;
}

// Problems of the files that rows refer to: hash -> problem.
std::map<std::string, std::string> LookAtArtifacts(SQLite::Database& db, const std::string& path) {
  std::map<std::string, std::string> wrong;
  SQLite::Statement query(
      db,
      "SELECT sha256, bytes FROM artifacts UNION SELECT sha256, bytes FROM checkpoints UNION "
      "SELECT sha256, bytes FROM files");
  while (wrong.size() < kMaxProblems && query.executeStep()) {
    const std::string sha256 = query.getColumn(0).getString();
    const std::optional<std::string> file = ArtifactPath(path, sha256);
    if (!file) continue;  // an invariant names it
    std::error_code error;
    const auto size = fs::file_size(*file, error);
    const auto wanted = static_cast<std::uintmax_t>(query.getColumn(1).getInt64());
    if (error) {
      wrong.emplace(sha256, Concat(*file, " is missing"));
    } else if (size != wanted) {
      wrong.emplace(sha256, Concat(*file, " has ", size, " bytes, not ", wanted));
    }
  }
  return wrong;
}

// Files that no row refers to: an upload whose event has not arrived yet, or one that was
// abandoned. They only cost space. The file `database` of a shared store says whose store it is.
std::vector<std::string> UnnamedFiles(SQLite::Database& db, const std::string& path) {
  std::vector<std::string> notes;
  std::error_code error;
  for (fs::recursive_directory_iterator it(path + ".artifacts", error), end;
       !error && it != end && notes.size() < kMaxProblems; it.increment(error)) {
    const std::string name = it->path().filename().string();
    if (it.depth() == 0 && name == "database") continue;
    if (it->is_regular_file(error) && !IsReferred(db, name)) {
      notes.push_back(Concat(it->path().string(), " belongs to no attempt"));
    }
  }
  return notes;
}

// A coordinator that serves the file may have removed an artifact since the snapshot (it removes
// the row first). A problem is therefore real only if a newer snapshot still has the row.
absl::Status CheckArtifacts(const std::string& path, std::map<std::string, std::string> wrong,
                            Check& check) {
  if (wrong.empty()) return absl::OkStatus();
  auto connection = Connection::Open(path);
  if (!connection.ok()) return connection.status();
  return (*connection)->Read([&](SQLite::Database& db) -> absl::Status {
    for (auto& [sha256, problem] : wrong) {
      if (IsReferred(db, sha256)) check.problems.push_back(std::move(problem));
    }
    return absl::OkStatus();
  });
}

}  // namespace

std::optional<std::string> ArtifactPath(const std::string& database, const std::string& sha256) {
  const std::optional<std::string> place = PlaceOfHash(sha256);
  if (!place) return std::nullopt;
  return Concat(database, ".artifacts/", *place);
}

absl::StatusOr<DatabaseInfo> ReadInfo(const std::string& path) {
  auto connection = Connection::Open(path);
  if (!connection.ok()) return connection.status();
  return (*connection)->Read([&](SQLite::Database& db) -> absl::StatusOr<DatabaseInfo> {
    const auto number = [&](const char* sql) { return db.execAndGet(sql).getInt64(); };
    DatabaseInfo info;
    info.path = path;
    info.schema_version = static_cast<int>(number("PRAGMA user_version"));
    info.bytes = FileBytes(path) + FileBytes(path + "-wal");
    info.sweeps = number("SELECT count(*) FROM sweeps WHERE deleted = 0");
    info.jobs = number("SELECT count(*) FROM jobs");
    info.jobs_succeeded = number("SELECT count(*) FROM jobs WHERE state = 'succeeded'");
    info.attempts = number("SELECT count(*) FROM attempts");
    info.epochs = number("SELECT count(*) FROM stored_epochs");
    info.ablated_heads = number("SELECT count(*) FROM head_ablation");
    info.artifacts = number(
        "SELECT count(*) FROM (SELECT sha256 FROM artifacts UNION SELECT sha256 FROM checkpoints "
        "UNION SELECT sha256 FROM files)");
    info.artifact_bytes = number(
        "SELECT coalesce(sum(bytes), 0) FROM (SELECT sha256, bytes FROM artifacts UNION "
        "SELECT sha256, bytes FROM checkpoints UNION SELECT sha256, bytes FROM files)");
    return info;
  });
}

std::vector<Check> CheckConnection(SQLite::Database& db) {
  std::vector<Check> checks = {CheckIntegrity(db)};
  if (!checks.front().problems.empty()) return checks;  // the other checks could only mislead
  checks.push_back(CheckReferences(db));
  for (const Invariant& invariant : Invariants()) checks.push_back(RunInvariant(db, invariant));
  checks.push_back(CheckAudit(db));
  return checks;
}

absl::StatusOr<std::vector<Check>> CheckDatabase(const std::string& path,
                                                 const std::function<bool()>& stopped) {
  auto connection = Connection::Open(path);
  if (!connection.ok()) return connection.status();
  const Interruption interruption((*connection)->db(), stopped);
  std::map<std::string, std::string> wrong_files;
  auto checks =
      (*connection)->Read([&](SQLite::Database& db) -> absl::StatusOr<std::vector<Check>> {
        std::vector<Check> checks = CheckConnection(db);
        if (!checks.front().problems.empty()) return checks;
        wrong_files = LookAtArtifacts(db, path);
        checks.push_back({kArtifactsCheck, {}, UnnamedFiles(db, path)});
        return checks;
      });
  // An interrupted query looks like a damaged file.
  if (stopped && stopped()) return absl::CancelledError("the check was stopped");
  if (!checks.ok()) return checks;
  absl::Status status = CheckArtifacts(path, std::move(wrong_files), checks->back());
  if (!status.ok()) return status;
  return checks;
}

}  // namespace pelab::db
