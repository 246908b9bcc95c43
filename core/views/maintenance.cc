#include "core/views/maintenance.h"

#include <SQLiteCpp/Backup.h>
#include <fcntl.h>
#include <unistd.h>

#include <filesystem>
#include <system_error>

#include "core/views/connection.h"
#include "core/views/text.h"

namespace pelab::views {
namespace {

namespace fs = std::filesystem;

std::int64_t FileBytes(const std::string& path) {
  std::error_code error;
  const auto size = fs::file_size(path, error);
  return error ? 0 : static_cast<std::int64_t>(size);
}

// A query whose every row is a problem, said by its first column.
struct Invariant {
  const char* name;
  const char* sql;
};

constexpr Invariant kInvariants[] = {
    {"epochs have no gap and none is there twice",
     "SELECT printf('job %d: %d rows for %d epochs from %d to %d', job_id, count(*), "
     "count(DISTINCT epoch), min(epoch), "
     "max(epoch)) FROM v_curves GROUP BY job_id "
     "HAVING min(epoch) <> 0 OR max(epoch) <> count(*) - 1 OR count(DISTINCT epoch) <> count(*)"},
    {"trained jobs have every epoch",
     "SELECT printf('job %d: %d of %d epochs are stored', j.job_id, "
     "(SELECT count(*) FROM v_curves AS c WHERE c.job_id = j.job_id), j.epochs) FROM jobs AS j "
     "WHERE j.trained AND (SELECT count(*) FROM v_curves AS c WHERE c.job_id = "
     "j.job_id) <> j.epochs"},
    {"summaries agree with the curves",
     "SELECT printf('job %d: epochs_done is %d, the curve has %d', j.job_id, j.epochs_done, "
     "(SELECT count(*) FROM v_curves AS c WHERE c.job_id = j.job_id)) FROM jobs AS j "
     "WHERE j.trained AND j.epochs_done <> (SELECT count(*) FROM v_curves AS c WHERE "
     "c.job_id = j.job_id)"},
    {"final accuracies are those of the last epoch",
     "SELECT printf('job %d: the summary says %d/%d, its last epoch %d/%d', j.job_id, "
     "j.test_correct, j.test_total, "
     "c.test_correct, c.test_total) FROM jobs AS j JOIN v_curves AS c ON c.job_id = j.job_id AND "
     "c.epoch = j.epochs - 1 "
     "WHERE j.trained AND (j.test_correct IS NOT c.test_correct OR j.test_total IS NOT "
     "c.test_total)"},
    {"ablation matrices are whole",
     "SELECT printf('analysis %d of job %d: %d of %d x %d heads', n.analysis_id, n.job_id, "
     "count(h.head), n.layers, "
     "n.heads) FROM analyses AS n LEFT JOIN head_ablation AS h USING (analysis_id) WHERE n.name = "
     "'head_ablation' "
     "GROUP BY n.analysis_id HAVING count(h.head) <> n.layers * n.heads OR max(h.layer) >= "
     "n.layers OR "
     "max(h.head) >= n.heads"},
    {"ablated counts follow from each other",
     "SELECT printf('analysis %d of job %d, layer %d head %d: %d correct of %d intact, %d lost, "
     "%d gained', n.analysis_id, n.job_id, h.layer, h.head, h.correct, n.intact_correct, h.lost, "
     "h.gained) FROM analyses AS n JOIN head_ablation AS h USING (analysis_id) WHERE "
     "h.correct NOT BETWEEN 0 AND n.total OR h.lost NOT BETWEEN 0 AND n.intact_correct OR "
     "h.gained NOT BETWEEN 0 AND n.total - n.intact_correct OR "
     "n.intact_correct - h.correct <> h.lost - h.gained"},
    {"entries of an ablation matrix exist whole or not at all",
     "SELECT printf('analysis %d of job %d, layer %d head %d', n.analysis_id, n.job_id, h.layer, "
     "h.head) FROM analyses AS n JOIN head_ablation AS h USING (analysis_id) "
     "WHERE n.intact_nll IS NOT NULL AND (h.correct IS NULL) + (h.lost IS NULL) + "
     "(h.gained IS NULL) + (h.drop_standard_error IS NULL) + (h.nll IS NULL) + "
     "(h.nll_standard_error IS NULL) NOT IN (0, 6)"},
    {"ablation matrices have their deposit indices",
     "SELECT printf('analysis %d of job %d: %d of %d layers, %d over all', n.analysis_id, "
     "n.job_id, count(d.layer) FILTER (WHERE d.layer >= 0), n.layers, "
     "count(d.layer) FILTER (WHERE d.layer = -1)) FROM analyses AS n "
     "LEFT JOIN deposit_indices AS d USING (analysis_id) "
     "WHERE n.name = 'head_ablation' AND n.intact_nll IS NOT NULL GROUP BY n.analysis_id "
     "HAVING count(d.layer) <> n.layers + 1 OR max(d.layer) <> n.layers - 1 OR min(d.layer) <> -1"},
    {"succeeded jobs are trained, and trained ones neither failed nor cancelled",
     "SELECT printf('job %d (%s)', job_id, state) FROM jobs WHERE "
     "(state = 'succeeded' AND NOT trained) OR (trained AND state IN ('failed', 'cancelled'))"},
    {"trained jobs have an attempt that succeeded",
     "SELECT printf('job %d', job_id) FROM jobs AS j WHERE j.trained AND NOT EXISTS "
     "(SELECT 1 FROM attempts AS a WHERE a.job_id = j.job_id AND a.outcome = 'succeeded')"},
    {"jobs that wait or have failed hold no open attempt",
     "SELECT printf('job %d (%s): attempt %d is open', j.job_id, j.state, a.number) FROM jobs AS j "
     "JOIN attempts AS a "
     "USING (job_id) WHERE a.outcome IS NULL AND j.state NOT IN ('assigned', 'running', "
     "'succeeded', 'cancelled')"}};

Check RunInvariant(SQLite::Database& db, const Invariant& invariant) {
  Check check{invariant.name, {}};
  SQLite::Statement query(db, invariant.sql);
  while (check.problems.size() < kMaxProblems && query.executeStep()) {
    check.problems.push_back(query.getColumn(0).getString());
  }
  return check;
}

Check CheckIntegrity(SQLite::Database& db) {
  Check check{"the file is a sound SQLite database", {}};
  SQLite::Statement query(db, Concat("PRAGMA integrity_check(", kMaxProblems, ")"));
  while (query.executeStep()) {
    if (const std::string line = query.getColumn(0).getString(); line != "ok")
      check.problems.push_back(line);
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

Check CheckArtifacts(SQLite::Database& db, const std::string& path) {
  Check check{"artifacts are there at their size", {}};
  SQLite::Statement query(db, "SELECT DISTINCT sha256, bytes FROM artifacts");
  while (check.problems.size() < kMaxProblems && query.executeStep()) {
    const std::string file = ArtifactPath(path, query.getColumn(0).getString());
    std::error_code error;
    const auto size = fs::file_size(file, error);
    const auto wanted = static_cast<std::uintmax_t>(query.getColumn(1).getInt64());
    if (error) {
      check.problems.push_back(Concat(file, " is missing"));
    } else if (size != wanted) {
      check.problems.push_back(Concat(file, " has ", size, " bytes, not ", wanted));
    }
  }
  return check;
}

absl::Status SyncFile(const std::string& path, int flags) {
  const int fd = open(path.c_str(), flags | O_CLOEXEC);
  const bool ok = fd >= 0 && fsync(fd) == 0;
  if (fd >= 0) close(fd);
  return ok ? absl::OkStatus() : absl::InternalError(Concat("cannot sync ", path));
}

absl::Status CopyDatabase(SQLite::Database& from, const std::string& target) {
  SQLite::Database to(target, SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE);
  SQLite::Backup backup(to, from);
  backup.executeStep(-1);
  return absl::OkStatus();
}

}  // namespace

std::string ArtifactPath(const std::string& database, const std::string& sha256) {
  return Concat(database, ".artifacts/", sha256.substr(0, 2), "/", sha256);
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
    info.sweeps = number("SELECT count(*) FROM sweeps");
    info.jobs = number("SELECT count(*) FROM jobs");
    info.jobs_succeeded = number("SELECT count(*) FROM jobs WHERE state = 'succeeded'");
    info.attempts = number("SELECT count(*) FROM attempts");
    info.epochs = number("SELECT count(*) FROM curves");
    info.ablated_heads = number("SELECT count(*) FROM head_ablation");
    info.artifacts = number("SELECT count(DISTINCT sha256) FROM artifacts");
    info.artifact_bytes = number(
        "SELECT coalesce(sum(bytes), 0) FROM (SELECT DISTINCT sha256, bytes FROM artifacts)");
    return info;
  });
}

std::vector<Check> CheckConnection(SQLite::Database& db) {
  std::vector<Check> checks = {CheckIntegrity(db)};
  if (!checks.front().problems.empty()) return checks;  // what follows could only mislead
  checks.push_back(CheckReferences(db));
  for (const Invariant& invariant : kInvariants) checks.push_back(RunInvariant(db, invariant));
  return checks;
}

absl::StatusOr<std::vector<Check>> CheckDatabase(const std::string& path) {
  auto connection = Connection::Open(path);
  if (!connection.ok()) return connection.status();
  return (*connection)->Read([&](SQLite::Database& db) -> absl::StatusOr<std::vector<Check>> {
    std::vector<Check> checks = CheckConnection(db);
    if (checks.front().problems.empty()) checks.push_back(CheckArtifacts(db, path));
    return checks;
  });
}

absl::Status Backup(const std::string& path, const std::string& target) {
  auto connection = Connection::Open(path);
  if (!connection.ok()) return connection.status();
  const std::string target_artifacts = target + ".artifacts";
  for (const std::string& taken : {target, target_artifacts}) {
    if (fs::exists(taken))
      return absl::AlreadyExistsError(Concat(taken, " is there already; name another file"));
  }
  absl::Status status;
  try {
    status = CopyDatabase((*connection)->db(), target);
    if (status.ok()) status = SyncFile(target, O_RDWR);
    std::error_code error;
    if (status.ok() && fs::exists(path + ".artifacts", error)) {
      fs::copy(path + ".artifacts", target_artifacts, fs::copy_options::recursive);
      for (const auto& entry : fs::recursive_directory_iterator(target_artifacts)) {
        if (status.ok()) status = SyncFile(entry.path(), O_RDONLY);
      }
    }
  } catch (const SQLite::Exception& error) {
    status = absl::InternalError(
        Concat("cannot copy ", path, " to ", target, ": ", std::string(error.what())));
  } catch (const fs::filesystem_error& error) {
    status = absl::InternalError(
        Concat("cannot copy the artifacts of ", path, ": ", error.code().message()));
  }
  if (!status.ok()) {
    std::error_code ignored;
    fs::remove(target, ignored);
    fs::remove_all(target_artifacts, ignored);
  }
  return status;
}

}  // namespace pelab::views
