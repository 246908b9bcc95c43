// A prepared statement without the work that SQLiteCpp does for every value (an object that shares
// the statement's ownership, and checks). Internal to core/db; call inside Connection::Read, which
// catches the exceptions.
#pragma once

#include <SQLiteCpp/SQLiteCpp.h>
#include <sqlite3.h>

#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "core/base/utf8.h"
#include "core/db/connection.h"
#include "core/db/statement_cache.h"

namespace pelab::db {

// A text of the row of a SQLite::Statement, as RawStatement::Text.
inline std::string TextOf(const SQLite::Column& column) { return ValidUtf8(column.getString()); }

// Throws SQLite::Exception. Not thread-safe.
class RawStatement {
 public:
  RawStatement(SQLite::Database& db, const std::string& sql)
      : db_(db.getHandle()), statement_(Prepare(sql)) {}
  // Takes the statement from those that the connection keeps, and gives it back at the end.
  RawStatement(Connection& connection, std::string sql)
      : db_(connection.db().getHandle()),
        cache_(&connection.statements()),
        sql_(std::move(sql)),
        statement_(connection.statements().Take(sql_)) {
    if (statement_ == nullptr) statement_ = Prepare(sql_);
  }
  ~RawStatement() {
    if (cache_ != nullptr) cache_->GiveBack(std::move(sql_), std::move(statement_));
  }
  RawStatement(const RawStatement&) = delete;

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
  // As they are stored.
  std::string Bytes(int column) const {
    const auto* bytes = static_cast<const char*>(sqlite3_column_blob(statement_.get(), column));
    const int size = sqlite3_column_bytes(statement_.get(), column);
    return bytes == nullptr ? "" : std::string(bytes, static_cast<std::size_t>(size));
  }
  bool IsNull(int column) const {
    return sqlite3_column_type(statement_.get(), column) == SQLITE_NULL;
  }

 private:
  StatementPtr Prepare(const std::string& sql) const {
    sqlite3_stmt* statement = nullptr;
    Check(sqlite3_prepare_v2(db_, sql.c_str(), -1, &statement, nullptr));
    return StatementPtr(statement);
  }
  void Check(int result) const {
    if (result != SQLITE_OK) throw SQLite::Exception(db_, result);
  }

  sqlite3* const db_;
  StatementCache* const cache_ = nullptr;
  std::string sql_;  // empty without a cache
  StatementPtr statement_;
};

}  // namespace pelab::db
