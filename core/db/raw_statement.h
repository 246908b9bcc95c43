// A prepared statement without the work that SQLiteCpp does for every value (an object that shares
// the statement's ownership, and checks). For the queries that read many rows. Internal to core/db;
// call inside Connection::Read, which catches the exceptions.
#pragma once

#include <SQLiteCpp/SQLiteCpp.h>
#include <sqlite3.h>

#include <cstdint>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "core/base/utf8.h"
#include "core/db/connection.h"

namespace pelab::db {

// A text of the row of a SQLite::Statement, as RawStatement::Text.
inline std::string TextOf(const SQLite::Column& column) { return ValidUtf8(column.getString()); }

// Throws SQLite::Exception. Not thread-safe.
class RawStatement {
 public:
  RawStatement(SQLite::Database& db, const std::string& sql) : db_(db.getHandle()) {
    sqlite3_stmt* statement = nullptr;
    Check(sqlite3_prepare_v2(db_, sql.c_str(), -1, &statement, nullptr));
    statement_.reset(statement);
  }

  // Parameters count from 1. They stay bound after Reset.
  void Bind(int parameter, std::int64_t value) {
    Check(sqlite3_bind_int64(statement_.get(), parameter, value));
  }
  void Bind(int parameter, double value) {
    Check(sqlite3_bind_double(statement_.get(), parameter, value));
  }
  void Bind(int parameter, const std::string& value) {
    Check(sqlite3_bind_text(statement_.get(), parameter, value.data(),
                            static_cast<int>(value.size()), SQLITE_TRANSIENT));
  }
  // Binds `values` to the parameters first, first + 1, …
  void BindAll(const std::vector<db::Bind>& values, int first) {
    for (const db::Bind& value : values) {
      std::visit([&](const auto& v) { Bind(first, v); }, value);
      ++first;
    }
  }
  // Advances to the next row; false if there is none.
  bool Step() {
    const int result = sqlite3_step(statement_.get());
    if (result == SQLITE_ROW) return true;
    if (result == SQLITE_DONE) return false;
    throw SQLite::Exception(db_, result);
  }
  void Reset() { sqlite3_reset(statement_.get()); }

  // Columns of the current row, counted from 0. Texts become parts of messages, which nobody can
  // read if they are not UTF-8, so that one such text in a file would break a whole list.
  std::int64_t Integer(int column) const { return sqlite3_column_int64(statement_.get(), column); }
  double Real(int column) const { return sqlite3_column_double(statement_.get(), column); }
  std::string Text(int column) const {
    const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(statement_.get(), column));
    const int bytes = sqlite3_column_bytes(statement_.get(), column);
    return text == nullptr ? "" : ValidUtf8({text, static_cast<std::size_t>(bytes)});
  }
  bool IsNull(int column) const {
    return sqlite3_column_type(statement_.get(), column) == SQLITE_NULL;
  }

 private:
  struct Finalize {
    void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
  };
  void Check(int result) const {
    if (result != SQLITE_OK) throw SQLite::Exception(db_, result);
  }

  sqlite3* db_;
  std::unique_ptr<sqlite3_stmt, Finalize> statement_;
};

}  // namespace pelab::db
