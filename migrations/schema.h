// By what pelab recognizes a database file, and which schemas it reads. Thread-safe.
#pragma once

#include <SQLiteCpp/SQLiteCpp.h>

#include <cstdint>
#include <string>

#include "absl/status/status.h"

namespace pelab::migrations {

// PRAGMA application_id: "PELB". A file with another id is not a pelab database.
inline constexpr std::int32_t kApplicationId = 0x50454C42;

// PRAGMA user_version of migrations/0001_init.sql; each later migration counts one up. Smaller
// numbers belong to schemas from before the first release, which nothing reads (docs/adr/0034).
inline constexpr int kFirstSchema = 101;

// PRAGMA user_version after the last migration.
int NewestSchema();

// Payload of the error for a file that a coordinator or `pelab db migrate` would migrate.
inline constexpr char kOlderSchemaPayload[] = "pelab.older_schema";

// Checks that `path` leads to a regular file or to nothing, and so does its journal: SQLite would
// wait for the other end of a pipe. FAILED_PRECONDITION otherwise. Opens nothing.
absl::Status CheckDatabasePath(const std::string& path);

// Makes a connection refuse statements that could write to the schema itself or to SQLite's own
// tables. Call it right after opening.
void KeepSchema(SQLite::Database& db);

// Checks that the file, which is not empty, is a pelab database and as pelab made it: its marks,
// and that nobody has changed its tables, views and indexes or added a trigger. Otherwise a view
// could run without end, and a trigger could change what a coordinator writes. Further tables and
// views are allowed. OK if it has the newest schema; otherwise FAILED_PRECONDITION: it is not a
// pelab database, or its schema is changed, newer, older (with the payload), or from before the
// first release. The message names `path` and what to do. Throws SQLite::Exception.
absl::Status CheckSchema(SQLite::Database& db, const std::string& path);

}  // namespace pelab::migrations
