// Databases with content in every schema that is read: schemas/rows_N.sql has the rows of schema N.
#pragma once

#include <SQLiteCpp/SQLiteCpp.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "migrations/migrations.h"
#include "migrations/schema.h"

namespace pelab::store {

// Writes a database of `schema` to `path`: the newest rows that are not of a newer schema, migrated
// step by step.
inline void WriteOldDatabase(const std::string& path, int schema) {
  const auto rows_of = [](int n) {
    return absl::StrCat(PELAB_SOURCE_DIR, "/tests/contract/store/schemas/rows_", n, ".sql");
  };
  int filled = schema;
  while (filled > migrations::kFirstSchema && !std::filesystem::exists(rows_of(filled))) --filled;
  std::stringstream rows;
  rows << std::ifstream(rows_of(filled)).rdbuf();
  ASSERT_NE(rows.str(), "");
  SQLite::Database db(path, SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE);
  db.exec("PRAGMA journal_mode = WAL");
  db.exec("PRAGMA synchronous = OFF");
  db.exec(absl::StrCat("PRAGMA application_id = ", migrations::kApplicationId));
  for (const migrations::Migration& step : migrations::All()) {
    if (step.version > schema) break;
    db.exec(std::string(step.sql));
    if (step.version == filled) db.exec(rows.str());
    db.exec(absl::StrCat("PRAGMA user_version = ", step.version));
  }
}

}  // namespace pelab::store
