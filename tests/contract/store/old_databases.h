// Databases with content in every schema that was ever committed: schemas/schemaN.sql is a dump of
// schema N.
#pragma once

#include <SQLiteCpp/SQLiteCpp.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "migrations/migrations.h"

namespace pelab::store {

// Writes a database of `schema` to `path`: the newest dump that is not newer, migrated step by
// step.
inline void WriteOldDatabase(const std::string& path, int schema) {
  const auto dump_of = [](int n) {
    return absl::StrCat(PELAB_SOURCE_DIR, "/tests/contract/store/schemas/schema", n, ".sql");
  };
  int dumped = schema;
  while (dumped > 0 && !std::filesystem::exists(dump_of(dumped))) --dumped;
  ASSERT_GT(dumped, 0);
  std::stringstream sql;
  sql << std::ifstream(dump_of(dumped)).rdbuf();
  SQLite::Database db(path, SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE);
  db.exec("PRAGMA journal_mode = WAL");
  db.exec("PRAGMA synchronous = OFF");
  db.exec(sql.str());
  for (const migrations::Migration& step : migrations::All()) {
    if (step.version <= dumped || step.version > schema) continue;
    db.exec(std::string(step.sql));
    db.exec(absl::StrCat("PRAGMA user_version = ", step.version));
  }
}

}  // namespace pelab::store
