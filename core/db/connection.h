// The one read-only connection of a Reader, and the helpers with which every query binds and reads.
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

namespace pelab::db {

inline constexpr int kBusyMs = 5000;  // how long SQLite waits for a lock

// A value for a bound parameter.
using Bind = std::variant<std::int64_t, double, std::string>;

// Binds `values` to parameters first, first + 1, …
void BindAll(SQLite::Statement& statement, const std::vector<Bind>& values, int first = 1);

// A lower-case state or outcome as SQL has it -> the number of the proto enum value PREFIX + upper
// case; 0 for NULL.
std::string UpperName(std::string_view prefix, const SQLite::Column& column);

// `text` as a whole decimal number, all of it digits.
bool ParseNumber(std::string_view text, std::int64_t* number);

class Connection {
 public:
  // The errors of Reader::Open.
  static absl::StatusOr<std::unique_ptr<Connection>> Open(const std::string& path);

  SQLite::Database& db() { return *db_; }

  // Runs `query(db) -> Status or StatusOr<T>` in one read transaction. SQLite's exceptions end
  // here.
  template <typename Query>
  auto Read(Query query) -> decltype(query(std::declval<SQLite::Database&>())) {
    try {
      SQLite::Transaction transaction(
          *db_);  // rolls back, which for a reader is the same as committing
      return query(*db_);
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
};

}  // namespace pelab::db
