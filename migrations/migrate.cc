#include "migrations/migrate.h"

#include <sqlite3.h>

#include <filesystem>

#include "absl/strings/str_cat.h"
#include "core/base/status.h"
#include "core/db/schema.h"
#include "core/experiment/chance.h"
#include "migrations/migrations.h"

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
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) {
    return absl::NotFoundError(absl::StrCat("no database at ", path));
  }
  try {
    SQLite::Database db(path, flags, kBusyTimeoutMs);
    return act(db);
  } catch (const SQLite::Exception& exception) {
    switch (exception.getErrorCode()) {
      case SQLITE_NOTADB:
        return absl::FailedPreconditionError(
            absl::StrCat(path, " is not a pelab database: it is not an SQLite file"));
      case SQLITE_CORRUPT:
        return absl::DataLossError(absl::StrCat(path, " is damaged (", exception.what(), ")"));
      case SQLITE_FULL:
        return absl::ResourceExhaustedError(
            absl::StrCat("cannot migrate ", path, ": its disk is full; it is as it was"));
      default:
        return absl::InternalError(absl::StrCat("cannot migrate ", path, ": ", exception.what()));
    }
  }
}

// Fills the columns that version 11 derives from the specs; SQL alone cannot compute them.
void FillDivergence(SQLite::Database& db) {
  SQLite::Statement all(db, "SELECT configuration_id, template FROM configurations");
  SQLite::Statement set(db,
                        "UPDATE configurations SET divergence_loss = ? WHERE configuration_id = ?");
  while (all.executeStep()) {
    const auto loss = experiment::DivergenceLossOf(all.getColumn(1).getString());
    if (!loss) continue;
    set.reset();
    set.bind(1, *loss);
    set.bind(2, all.getColumn(0).getInt64());
    set.exec();
  }
  db.exec(
      "UPDATE jobs SET diverged = 1 FROM configurations AS c WHERE "
      "c.configuration_id = jobs.configuration_id AND epochs_done = epochs AND "
      "min(train_loss, test_loss) > c.divergence_loss");
}

}  // namespace

absl::StatusOr<int> SchemaOf(SQLite::Database& db, const std::string& path) {
  if (IsEmpty(db)) return 0;
  if (Pragma(db, "application_id") != db::kApplicationId) {
    return absl::FailedPreconditionError(
        absl::StrCat(path, " is an SQLite database, but not one of pelab's"));
  }
  const std::int64_t version = Pragma(db, "user_version");
  if (version > db::kSchemaVersion) {
    return absl::FailedPreconditionError(
        absl::StrCat(path, " is from a newer version of pelab (schema ", version,
                     "; this program knows up to ", db::kSchemaVersion, ")"));
  }
  return static_cast<int>(version);
}

void SetUpWriting(SQLite::Database& db) {
  db.exec("PRAGMA journal_mode = WAL");
  db.exec("PRAGMA synchronous = FULL");
  db.exec("PRAGMA foreign_keys = ON");
  db.exec("PRAGMA wal_autocheckpoint = 0");
}

absl::StatusOr<Migrated> Migrate(SQLite::Database& db, const std::string& path) {
  PELAB_ASSIGN_OR_RETURN(const int from, SchemaOf(db, path));
  Migrated done{.from = from, .to = from};
  if (from == db::kSchemaVersion) return done;
  SQLite::Transaction transaction(db, SQLite::TransactionBehavior::IMMEDIATE);
  for (const Migration& step : All()) {
    if (step.version <= from) continue;
    db.exec(std::string(step.sql));
    if (step.version == 11) FillDivergence(db);
    done.to = step.version;
  }
  db.exec(absl::StrCat("PRAGMA application_id = ", db::kApplicationId));
  db.exec(absl::StrCat("PRAGMA user_version = ", done.to));
  transaction.commit();
  return done;
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
