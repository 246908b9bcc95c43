// Migrates a database file to the newest schema.
#pragma once

#include <SQLiteCpp/SQLiteCpp.h>

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace pelab::migrations {

// The schema version of a file; 0 if it is empty. The errors are those of CheckSchema, but an older
// schema is none. Writes nothing. Throws SQLite::Exception.
absl::StatusOr<int> SchemaOf(SQLite::Database& db, const std::string& path);

struct Migrated {
  int from = 0;
  int to = 0;  // equal to `from`: nothing was done
};

// Sets up a connection for writing a pelab database: WAL, every commit synced, foreign keys
// checked, no automatic WAL checkpoints. Throws SQLite::Exception.
void SetUpWriting(SQLite::Database& db);

// Migrates the file to the newest schema. All steps are one transaction: if the process is killed,
// the file has either the old schema or the new one. The connection must be set up for writing.
// Errors are those of SchemaOf. Throws SQLite::Exception.
absl::StatusOr<Migrated> Migrate(SQLite::Database& db, const std::string& path);

// Opens an existing file, sets the connection up for writing and migrates it. Nobody may serve the
// file meanwhile: hold its lock. NOT_FOUND if there is no file.
absl::StatusOr<Migrated> MigrateFile(const std::string& path);
// SchemaOf for an existing file. NOT_FOUND if there is none.
absl::StatusOr<int> SchemaOfFile(const std::string& path);

}  // namespace pelab::migrations
