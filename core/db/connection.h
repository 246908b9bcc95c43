// The one read-only connection of a Reader, and helpers that bind and read values in every query.
// Internal to core/db.
#pragma once

#include <SQLiteCpp/SQLiteCpp.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/db/statement_cache.h"

namespace pelab::db {

inline constexpr int kBusyMs = 5000;  // how long SQLite waits for a lock, in milliseconds

// A value for a bound parameter.
using Bind = std::variant<std::int64_t, double, std::string>;

// Binds `values` to the parameters first, first + 1, …
void BindAll(SQLite::Statement& statement, const std::vector<Bind>& values, int first = 1);

// Parses `text` as a decimal integer; false if `text` has other characters or the number does not
// fit.
bool ParseNumber(std::string_view text, std::int64_t* number);

class Connection {
 public:
  // Opens the file; the errors are those of Reader::Open.
  static absl::StatusOr<std::unique_ptr<Connection>> Open(const std::string& path);
  static std::unique_ptr<Connection> Over(std::unique_ptr<SQLite::Database> db);

  SQLite::Database& db() { return *db_; }
  // NOLINTNEXTLINE(google-explicit-constructor): queries without a RawStatement take the database.
  operator SQLite::Database&() { return *db_; }
  StatementCache& statements() { return statements_; }

  // Runs `query(*this) -> Status or StatusOr<T>` in one read transaction, and turns SQLite's
  // exceptions into statuses.
  template <typename Query>
  auto Read(Query query) -> decltype(query(std::declval<Connection&>())) {
    try {
      SQLite::Transaction transaction(
          *db_);  // rolls back; for a reader this is the same as a commit
      return query(*this);
    } catch (const SQLite::Exception& error) {
      return Failed(error);
    }
  }

 private:
  Connection(std::string path, std::unique_ptr<SQLite::Database> db)
      : path_(std::move(path)), db_(std::move(db)) {}
  absl::Status CheckFile();
  absl::Status Failed(const SQLite::Exception& error) const;

  std::string path_;
  std::unique_ptr<SQLite::Database> db_;
  StatementCache statements_;  // of db_, so they end before it
};

}  // namespace pelab::db
