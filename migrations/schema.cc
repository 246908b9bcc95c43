#include "migrations/schema.h"

#include <SQLiteCpp/Savepoint.h>
#include <sqlite3.h>

#include "absl/status/statusor.h"
#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "core/base/regular_file.h"
#include "core/base/status.h"
#include "migrations/migrations.h"
#include "migrations/objects.h"

namespace pelab::migrations {
namespace {

// The schema version, or why this program cannot do anything with the file.
absl::StatusOr<int> CheckMarks(const std::string& path, std::int64_t application_id,
                               std::int64_t user_version) {
  const int newest = NewestSchema();
  if (application_id != kApplicationId) {
    return absl::FailedPreconditionError(
        absl::StrCat(path, " is not a pelab database: its application id is ", application_id,
                     ", that of pelab is ", kApplicationId));
  }
  if (user_version > newest) {
    return absl::FailedPreconditionError(
        absl::StrCat(path, " is from a newer pelab: its schema is version ", user_version,
                     ", this program knows up to ", newest));
  }
  // client/python/pelab/_file.py says the same.
  if (user_version < kFirstSchema) {
    return absl::FailedPreconditionError(absl::StrCat(
        path, " has schema version ", user_version,
        ", from before the first release, which commit 36de102 (2026-11-23) was the last to read: "
        "use a pelab of that commit, or convert the file as docs/operations.md describes"));
  }
  return static_cast<int>(user_version);
}

std::int64_t Pragma(SQLite::Database& db, const char* name) {
  return db.execAndGet(absl::StrCat("PRAGMA ", name)).getInt64();
}

absl::Status CheckSnapshot(SQLite::Database& db, const std::string& path) {
  PELAB_ASSIGN_OR_RETURN(const int version, CheckMarks(path, Pragma(db, "application_id"),
                                                       Pragma(db, "user_version")));
  PELAB_RETURN_IF_ERROR(CheckObjects(db, path, version));
  if (version == NewestSchema()) return absl::OkStatus();
  absl::Status status = absl::FailedPreconditionError(absl::StrCat(
      path, " has schema version ", version, " and this program reads ", NewestSchema(),
      "; pelab db migrate migrates it, and so does a pelab-server that starts on it"));
  status.SetPayload(kOlderSchemaPayload, absl::Cord());
  return status;
}

}  // namespace

int NewestSchema() { return All().back().version; }

absl::Status CheckDatabasePath(const std::string& path) {
  PELAB_RETURN_IF_ERROR(CheckRegularFile(path, "a pelab database"));
  return CheckRegularFile(absl::StrCat(path, "-journal"), "a journal of SQLite; remove it");
}

void KeepSchema(SQLite::Database& db) {
  int* const unused = nullptr;
  sqlite3_db_config(db.getHandle(), SQLITE_DBCONFIG_DEFENSIVE, 1, unused);
}

absl::Status CheckSchema(SQLite::Database& db, const std::string& path) {
  // One snapshot, because somebody may migrate the file meanwhile. A savepoint can be in a
  // transaction, too.
  SQLite::Savepoint snapshot(db, "check_schema");
  absl::Status status = CheckSnapshot(db, path);
  snapshot.release();
  return status;
}

}  // namespace pelab::migrations
