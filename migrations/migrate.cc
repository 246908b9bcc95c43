#include "migrations/migrate.h"

#include <sqlite3.h>

#include <filesystem>

#include "absl/strings/str_cat.h"
#include "core/base/status.h"
#include "migrations/migrations.h"
#include "migrations/schema.h"
#include "migrations/sqlite_message.h"

namespace pelab::migrations {
namespace {

// Other processes only read, but they may hold a lock briefly while they recover the WAL.
constexpr int kBusyTimeoutMs = 5000;

std::int64_t Pragma(SQLite::Database& db, const char* name) {
  return db.execAndGet(absl::StrCat("PRAGMA ", name)).getInt64();
}

bool IsEmpty(SQLite::Database& db) {
  return db.execAndGet("SELECT count(*) FROM sqlite_master").getInt64() == 0 &&
         Pragma(db, "user_version") == 0 && Pragma(db, "application_id") == 0;
}

// Calls `act` with a connection to an existing file and turns SQLite's exceptions into a status.
template <typename Act>
auto OnFile(const std::string& path, int flags, Act act)
    -> decltype(act(std::declval<SQLite::Database&>())) {
  PELAB_RETURN_IF_ERROR(CheckDatabasePath(path));
  std::error_code error;
  if (!std::filesystem::exists(path, error)) {
    return absl::NotFoundError(absl::StrCat("no database at ", path));
  }
  try {
    SQLite::Database db(path, flags, kBusyTimeoutMs);
    KeepSchema(db);
    return act(db);
  } catch (const SQLite::Exception& exception) {
    switch (exception.getErrorCode()) {
      case SQLITE_NOTADB:
        return absl::FailedPreconditionError(
            absl::StrCat(path, " is not a pelab database: it is not an SQLite file"));
      case SQLITE_CORRUPT:
        return absl::DataLossError(absl::StrCat(path, " is damaged (", MessageOf(exception), ")"));
      case SQLITE_FULL:
        return absl::ResourceExhaustedError(
            absl::StrCat("cannot migrate ", path, ": its disk is full; it is as it was"));
      default:
        return absl::InternalError(
            absl::StrCat("cannot migrate ", path, ": ", MessageOf(exception)));
    }
  }
}

// Makes at once what the migrations make one after another, in a fifth of the time.
void MakeNewest(SQLite::Database& db) {
  for (const Object& object : Objects()) {
    const bool made_by_sqlite = object.sql.empty() || object.name.starts_with("sqlite_");
    if (object.last == NewestSchema() && !made_by_sqlite) db.exec(std::string(object.sql));
  }
  db.exec(std::string(FirstRows()));
}

}  // namespace

absl::StatusOr<int> SchemaOf(SQLite::Database& db, const std::string& path) {
  if (IsEmpty(db)) return 0;
  const absl::Status status = CheckSchema(db, path);
  if (!status.ok() && !status.GetPayload(kOlderSchemaPayload)) return status;
  return static_cast<int>(Pragma(db, "user_version"));
}

void SetUpWriting(SQLite::Database& db) {
  db.exec("PRAGMA journal_mode = WAL");
  db.exec("PRAGMA synchronous = FULL");
  db.exec("PRAGMA foreign_keys = ON");
  db.exec("PRAGMA wal_autocheckpoint = 0");
}

absl::StatusOr<Migrated> Migrate(SQLite::Database& db, const std::string& path) {
  const int newest = NewestSchema();
  PELAB_ASSIGN_OR_RETURN(int from, SchemaOf(db, path));
  if (from == newest) return Migrated{.from = from, .to = newest};
  SQLite::Transaction transaction(db, SQLite::TransactionBehavior::IMMEDIATE);
  // Asked again, because another process may have migrated the file before this one got its lock.
  PELAB_ASSIGN_OR_RETURN(from, SchemaOf(db, path));
  if (from == 0) MakeNewest(db);
  for (const Migration& step : All()) {
    if (from != 0 && step.version > from) db.exec(std::string(step.sql));
  }
  db.exec(absl::StrCat("PRAGMA application_id = ", kApplicationId));
  db.exec(absl::StrCat("PRAGMA user_version = ", newest));
  transaction.commit();
  return Migrated{.from = from, .to = newest};
}

absl::StatusOr<Migrated> MigrateFile(const std::string& path) {
  return OnFile(path, SQLite::OPEN_READWRITE,
                [&](SQLite::Database& db) -> absl::StatusOr<Migrated> {
                  PELAB_RETURN_IF_ERROR(SchemaOf(db, path).status());  // before anything is written
                  SetUpWriting(db);
                  return Migrate(db, path);
                });
}

absl::StatusOr<int> SchemaOfFile(const std::string& path) {
  return OnFile(path, SQLite::OPEN_READONLY,
                [&](SQLite::Database& db) { return SchemaOf(db, path); });
}

}  // namespace pelab::migrations
