// Bringing a database file to the newest schema.
#pragma once

#include <SQLiteCpp/SQLiteCpp.h>

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace pelab::migrations {

// Which schema a file is of: 0 where it is empty. FAILED_PRECONDITION where it is not pelab's, or
// from a newer version (both named). Writes nothing; throws SQLite::Exception.
absl::StatusOr<int> SchemaOf(SQLite::Database& db, const std::string& path);

struct Migrated {
  int from = 0;
  int to = 0;  // equal: nothing was done
};

// Settings of a connection that writes a pelab database: WAL, every commit synced, references
// checked, no checkpoint but those that are asked for. Throws SQLite::Exception.
void SetUpWriting(SQLite::Database& db);

// From the schema of the file to the newest, all steps in one transaction: whoever is killed
// meanwhile leaves the old schema or the new one. The connection is set up for writing. Errors of
// SchemaOf; throws SQLite::Exception.
absl::StatusOr<Migrated> Migrate(SQLite::Database& db, const std::string& path);

// The same for a file that is there and that nobody serves (hold its lock). NOT_FOUND where there
// is none.
absl::StatusOr<Migrated> MigrateFile(const std::string& path);
// SchemaOf a file that is there.
absl::StatusOr<int> SchemaOfFile(const std::string& path);

}  // namespace pelab::migrations
