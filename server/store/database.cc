#include "server/store/database.h"

#include <sqlite3.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/base/status.h"
#include "core/views/schema.h"
#include "migrations/migrations.h"

namespace pelab::store {
namespace {

// Other processes only read; they may hold a lock for the moment of recovering the WAL.
constexpr int kBusyTimeoutMs = 5000;

std::int64_t Pragma(SQLite::Database& db, const char* name) {
  return db.execAndGet(absl::StrCat("PRAGMA ", name)).getInt64();
}

bool IsEmpty(SQLite::Database& db) {
  return db.execAndGet("SELECT count(*) FROM sqlite_master").getInt64() == 0 &&
         Pragma(db, "user_version") == 0 && Pragma(db, "application_id") == 0;
}

absl::Status CheckIdentity(SQLite::Database& db, const std::string& path) {
  if (IsEmpty(db)) return absl::OkStatus();
  if (Pragma(db, "application_id") != views::kApplicationId) {
    return absl::FailedPreconditionError(
        absl::StrCat(path, " is an SQLite database, but not one of pelab's"));
  }
  const std::int64_t version = Pragma(db, "user_version");
  if (version > views::kSchemaVersion) {
    return absl::FailedPreconditionError(
        absl::StrCat(path, " is from a newer version of pelab (schema ", version,
                     "; this program knows up to ", views::kSchemaVersion, ")"));
  }
  return absl::OkStatus();
}

void Migrate(SQLite::Database& db) {
  for (const migrations::Migration& step : migrations::All()) {
    if (step.version <= Pragma(db, "user_version")) continue;
    SQLite::Transaction transaction(db, SQLite::TransactionBehavior::IMMEDIATE);
    db.exec(std::string(step.sql));
    db.exec(absl::StrCat("PRAGMA application_id = ", views::kApplicationId));
    db.exec(absl::StrCat("PRAGMA user_version = ", step.version));
    transaction.commit();
  }
}

// The identity is checked before anything that writes, the switch to WAL included.
absl::Status SetUp(SQLite::Database& db, const std::string& path) {
  PELAB_RETURN_IF_ERROR(CheckIdentity(db, path));
  db.exec("PRAGMA journal_mode = WAL");
  db.exec("PRAGMA synchronous = FULL");
  db.exec("PRAGMA foreign_keys = ON");
  // Checkpoints are the writer thread's, between batches.
  db.exec("PRAGMA wal_autocheckpoint = 0");
  db.exec("PRAGMA cache_size = -65536");
  Migrate(db);
  return absl::OkStatus();
}

}  // namespace

Query::~Query() {
  if (statement_ == nullptr) return;
  // A reset repeats the error of the step before it, which has been thrown already.
  statement_->tryReset();
}

Database::Database(const std::string& path, const std::string& vfs)
    : connection_(path, SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE, kBusyTimeoutMs, vfs) {}

absl::StatusOr<std::unique_ptr<Database>> Database::Open(const std::string& path,
                                                         const std::string& vfs) {
  try {
    std::unique_ptr<Database> database(new Database(path, vfs));
    PELAB_RETURN_IF_ERROR(SetUp(database->connection_, path));
    return database;
  } catch (const SQLite::Exception& error) {
    if (error.getErrorCode() == SQLITE_NOTADB) {
      return absl::FailedPreconditionError(absl::StrCat(path, " is not a pelab database"));
    }
    return ToStatus(error, absl::StrCat("cannot open the database ", path));
  }
}

SQLite::Statement& Database::Prepare(const char* sql) {
  std::unique_ptr<SQLite::Statement>& statement = statements_[sql];
  if (!statement) statement = std::make_unique<SQLite::Statement>(connection_, sql);
  return *statement;
}

bool Database::Checkpoint(bool truncate) {
  const int mode = truncate ? SQLITE_CHECKPOINT_TRUNCATE : SQLITE_CHECKPOINT_PASSIVE;
  int in_wal = 0;
  int moved = 0;
  const int rc = sqlite3_wal_checkpoint_v2(connection_.getHandle(), nullptr, mode, &in_wal, &moved);
  return rc == SQLITE_OK && in_wal == moved;
}

absl::Status ToStatus(const SQLite::Exception& error, absl::string_view what) {
  const std::string message = absl::StrCat(what, ": ", error.what());
  switch (error.getErrorCode()) {
    case SQLITE_FULL:
    case SQLITE_IOERR:  // a disk that fills while the WAL grows is reported as a failed write
      return absl::ResourceExhaustedError(message);
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return absl::UnavailableError(message);
    case SQLITE_CORRUPT:
      return absl::DataLossError(message);
    case SQLITE_NOTADB:
      return absl::FailedPreconditionError(message);
    case SQLITE_CANTOPEN:
      return absl::NotFoundError(absl::StrCat(what, ": its directory must exist and be writable"));
    case SQLITE_PERM:
    case SQLITE_READONLY:
    case SQLITE_AUTH:
      return absl::PermissionDeniedError(message);
    default:
      return absl::InternalError(message);
  }
}

}  // namespace pelab::store
