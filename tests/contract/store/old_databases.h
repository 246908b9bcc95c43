// Databases with content in every schema that is read: schemas/rows_N.sql has rows that are added
// at schema N.
#pragma once

#include <SQLiteCpp/SQLiteCpp.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "migrations/migrations.h"
#include "migrations/schema.h"

namespace pelab::store {

// The rows that are added at a schema; empty if there are none.
inline std::string RowsAddedAt(int schema) {
  std::stringstream rows;
  rows << std::ifstream(
              absl::StrCat(PELAB_SOURCE_DIR, "/tests/contract/store/schemas/rows_", schema, ".sql"))
              .rdbuf();
  return rows.str();
}

// Writes a database of `schema` to `path`, which is migrated step by step and gets rows on the way.
inline void WriteOldDatabase(const std::string& path, int schema) {
  ASSERT_NE(RowsAddedAt(migrations::kFirstSchema), "");
  SQLite::Database db(path, SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE);
  db.exec("PRAGMA journal_mode = WAL");
  db.exec("PRAGMA synchronous = OFF");
  db.exec(absl::StrCat("PRAGMA application_id = ", migrations::kApplicationId));
  for (const migrations::Migration& step : migrations::All()) {
    if (step.version > schema) break;
    db.exec(std::string(step.sql));
    db.exec(RowsAddedAt(step.version));
    db.exec(absl::StrCat("PRAGMA user_version = ", step.version));
  }
}

}  // namespace pelab::store
