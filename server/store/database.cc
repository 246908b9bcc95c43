#include "server/store/database.h"

#include <google/protobuf/descriptor.h>
#include <sqlite3.h>

#include <deque>
#include <stdexcept>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "core/base/log.h"
#include "core/base/status.h"
#include "migrations/migrate.h"
#include "migrations/schema.h"
#include "migrations/sqlite_message.h"
#include "server/store/wal_file.h"

namespace pelab::store {
namespace {

// Other processes only read, but they may hold a lock briefly while they recover the WAL.
constexpr int kBusyTimeoutMs = 5000;

// The file's identity is checked before anything is written, including the switch to WAL.
absl::Status SetUp(SQLite::Database& db, const std::string& path, const std::string& vfs) {
  PELAB_RETURN_IF_ERROR(migrations::SchemaOf(db, path).status());
  PELAB_RETURN_IF_ERROR(RewriteWal(path, vfs));
  // WAL checkpoints are started by the writer thread, between batches.
  migrations::SetUpWriting(db);
  db.exec("PRAGMA cache_size = -262144");
  PELAB_ASSIGN_OR_RETURN(const migrations::Migrated done, migrations::Migrate(db, path));
  if (done.from != 0 && done.from != done.to) {
    spdlog::info("{} was migrated from schema {} to {}", path, done.from, done.to);
  }
  // Set after migrating, which needs the checks. With checks, SQLite would build a table of the
  // allowed names for every statement that sets a state. The names need no check, because all come
  // from core/state's enumerations.
  db.exec("PRAGMA ignore_check_constraints = ON");
  return absl::OkStatus();
}

}  // namespace

const char* SqlFor(const google::protobuf::Descriptor* message, const char* sql) {
  std::string columns, parameters;
  for (int i = 0; i < message->field_count(); ++i) {
    const char* separator = i == 0 ? "" : ", ";
    absl::StrAppend(&columns, separator, message->field(i)->name());
    absl::StrAppend(&parameters, separator, "?");
  }
  static auto& kept = *new std::deque<std::string>;
  return kept
      .emplace_back(absl::StrReplaceAll(sql, {{"COLUMNS", columns}, {"PARAMETERS", parameters}}))
      .c_str();
}

Query::~Query() {
  if (statement_ == nullptr) return;
  // A reset reports the error of the previous step again, which has been thrown already.
  statement_->tryReset();
}

Database::Database(const std::string& path, const std::string& vfs)
    // No mutex of its own, because one thread at a time uses the connection.
    : connection_(path, SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE | SQLite::OPEN_NOMUTEX,
                  kBusyTimeoutMs, vfs) {}

absl::StatusOr<std::unique_ptr<Database>> Database::Open(const std::string& path,
                                                         const std::string& vfs) {
  PELAB_RETURN_IF_ERROR(migrations::CheckDatabasePath(path));
  try {
    std::unique_ptr<Database> database(new Database(path, vfs));
    migrations::KeepSchema(database->connection_);
    PELAB_RETURN_IF_ERROR(SetUp(database->connection_, path, vfs));
    database->CountWalPages();
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

int Database::BindFields(SQLite::Statement& s, int i, const google::protobuf::Message& message) {
  using Field = google::protobuf::FieldDescriptor;
  const google::protobuf::Descriptor& type = *message.GetDescriptor();
  const google::protobuf::Reflection& values = *message.GetReflection();
  for (int at = 0; at < type.field_count(); ++at) {
    const Field* field = type.field(at);
    if (field->has_presence() && !values.HasField(message, field)) {
      s.bind(i + at);  // NULL
      continue;
    }
    switch (field->cpp_type()) {
      case Field::CPPTYPE_INT32:
        Bind(s, i + at, values.GetInt32(message, field));
        break;
      case Field::CPPTYPE_INT64:
        Bind(s, i + at, values.GetInt64(message, field));
        break;
      case Field::CPPTYPE_DOUBLE:
        Bind(s, i + at, values.GetDouble(message, field));
        break;
      case Field::CPPTYPE_STRING:
        Bind(s, i + at, values.GetString(message, field));
        break;
      default:  // no stored message has other types
        throw std::logic_error(field->full_name() + " is neither a number nor a text");
    }
  }
  return i + type.field_count() - 1;
}

// SQLite has one such hook, and automatic checkpoints, which are switched off, would use it too.
void Database::CountWalPages() {
  page_bytes_ = connection_.execAndGet("PRAGMA page_size").getInt64();
  sqlite3_wal_hook(
      connection_.getHandle(),
      [](void* pages, sqlite3*, const char*, int count) {
        *static_cast<std::int64_t*>(pages) = count;
        return SQLITE_OK;
      },
      &wal_pages_);
}

bool Database::Checkpoint(bool truncate) {
  const int mode = truncate ? SQLITE_CHECKPOINT_TRUNCATE : SQLITE_CHECKPOINT_PASSIVE;
  int in_wal = 0;
  int moved = 0;
  const int rc = sqlite3_wal_checkpoint_v2(connection_.getHandle(), nullptr, mode, &in_wal, &moved);
  return rc == SQLITE_OK && in_wal == moved;
}

bool Database::Moved() {
  int moved = 0;
  // Databases in memory, and file systems of tests, do not answer: they are not moved.
  const int rc =
      sqlite3_file_control(connection_.getHandle(), "main", SQLITE_FCNTL_HAS_MOVED, &moved);
  return rc == SQLITE_OK && moved != 0;
}

absl::Status ToStatus(const SQLite::Exception& error, absl::string_view what) {
  const std::string message = absl::StrCat(what, ": ", migrations::MessageOf(error));
  switch (error.getErrorCode()) {
    case SQLITE_FULL:
      return absl::ResourceExhaustedError(
          absl::StrCat(what, ": its disk is full; free some space and try again"));
    // Reported as a failed write, for instance if the disk fills up while the WAL grows.
    case SQLITE_IOERR:
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
