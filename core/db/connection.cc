#include "core/db/connection.h"

#include <sqlite3.h>

#include <charconv>
#include <filesystem>
#include <system_error>

#include "absl/strings/ascii.h"
#include "core/base/strings.h"
#include "migrations/schema.h"
#include "migrations/sqlite_message.h"

namespace pelab::db {
namespace {

// A coordinator that could not start leaves an empty file, which it locked.
bool IsEmpty(const std::string& path) {
  std::error_code error;
  const std::uintmax_t bytes = std::filesystem::file_size(path, error);
  return error ? error == std::errc::no_such_file_or_directory : bytes == 0;
}

// NOMUTEX: one thread at a time uses the connection, so SQLite need not lock for every value.
constexpr int kFlags = SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX;

std::int64_t Pragma(SQLite::Database& db, const char* name) {
  return db.execAndGet(Concat("PRAGMA ", name)).getInt64();
}

// `path` for a file: URI, with the characters escaped that have a meaning in URIs.
std::string UriPath(const std::string& path) {
  std::string uri;
  for (const char c : path) {
    if (c == '%') {
      uri += "%25";
    } else if (c == '?') {
      uri += "%3f";
    } else if (c == '#') {
      uri += "%23";
    } else {
      uri += c;
    }
  }
  return uri;
}

// A read-only connection to a WAL database creates the -shm file if it is missing. In a read-only
// directory this fails. If there is also no -wal file, nobody writes, so the file can be opened as
// immutable.
std::unique_ptr<SQLite::Database> OpenFile(const std::string& path) {
  auto db = std::make_unique<SQLite::Database>(path, kFlags, kBusyMs);
  try {
    Pragma(*db, "schema_version");
    return db;
  } catch (const SQLite::Exception& error) {
    std::error_code ignored;
    const auto wal_bytes = std::filesystem::file_size(path + "-wal", ignored);
    const bool has_wal = !ignored && wal_bytes > 0;
    if (error.getErrorCode() != SQLITE_CANTOPEN || has_wal) throw;
  }
  return std::make_unique<SQLite::Database>("file:" + UriPath(path) + "?immutable=1",
                                            kFlags | SQLite::OPEN_URI, kBusyMs);
}

absl::Status Damaged(const std::string& path, const SQLite::Exception& error) {
  return absl::DataLossError(Concat(path, " is damaged (", migrations::MessageOf(error),
                                    "): pelab db check says where; restore a backup"));
}

// Whether SQLite refuses a query because of its size, which a user's condition can cause.
bool IsTooLarge(const SQLite::Exception& error) {
  if (error.getErrorCode() == SQLITE_TOOBIG) return true;
  const std::string_view what = error.what();
  for (const std::string_view text :
       {"parser stack overflow", "Expression tree is too large", "too many SQL variables",
        "too many terms", "pattern too complex"}) {
    if (what.find(text) != std::string_view::npos) return true;
  }
  return false;
}

}  // namespace

void BindAll(SQLite::Statement& statement, const std::vector<Bind>& values, int first) {
  for (const Bind& value : values) {
    std::visit([&](const auto& v) { statement.bind(first, v); }, value);
    ++first;
  }
}

bool ParseNumber(std::string_view text, std::int64_t* number) {
  if (text.empty() || !absl::ascii_isdigit(static_cast<unsigned char>(text.front()))) return false;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *number);
  return error == std::errc() && end == text.data() + text.size();
}

absl::StatusOr<std::unique_ptr<Connection>> Connection::Open(const std::string& path) {
  std::error_code error;
  const auto type = std::filesystem::status(path, error).type();
  if (type == std::filesystem::file_type::not_found) {
    return absl::NotFoundError(Concat("no database at ", path));
  }
  if (IsEmpty(path) && IsEmpty(path + "-wal")) {
    return absl::NotFoundError(
        Concat("no database at ", path, " yet: nothing was stored in the file"));
  }
  if (absl::Status status = migrations::CheckDatabasePath(path); !status.ok()) return status;
  try {
    std::unique_ptr<Connection> connection(new Connection(path, OpenFile(path)));
    if (absl::Status status = connection->CheckFile(); !status.ok()) return status;
    return connection;
  } catch (const SQLite::Exception& exception) {
    if (exception.getErrorCode() == SQLITE_NOTADB) {
      return absl::FailedPreconditionError(
          Concat(path, " is not a pelab database: it is not an SQLite file"));
    }
    if (exception.getErrorCode() == SQLITE_CORRUPT) return Damaged(path, exception);
    return absl::UnavailableError(
        Concat("cannot read ", path, ": ", migrations::MessageOf(exception)));
  }
}

std::unique_ptr<Connection> Connection::Over(std::unique_ptr<SQLite::Database> db) {
  migrations::KeepSchema(*db);
  std::string path = db->getFilename();
  return std::unique_ptr<Connection>(new Connection(std::move(path), std::move(db)));
}

absl::Status Connection::CheckFile() {
  migrations::KeepSchema(*db_);
  return migrations::CheckSchema(*db_, path_);
}

absl::Status Connection::Failed(const SQLite::Exception& error) const {
  if (error.getErrorCode() == SQLITE_CORRUPT) return Damaged(path_, error);
  if (IsTooLarge(error)) {
    return absl::InvalidArgumentError(
        Concat("the condition is too large for SQLite (", migrations::MessageOf(error),
               "): use fewer conditions, lists with in (...), or fewer brackets in each other"));
  }
  // An error of the query, not of the file: a retry would not help. (SQLite reports SQLITE_SCHEMA
  // if it read the schema again before giving up.)
  const int code = error.getErrorCode();
  if (code == SQLITE_ERROR || code == SQLITE_SCHEMA) {
    return absl::InternalError(Concat("cannot ask ", path_, ": ", migrations::MessageOf(error)));
  }
  return absl::UnavailableError(Concat("cannot read ", path_, ": ", migrations::MessageOf(error)));
}

}  // namespace pelab::db
