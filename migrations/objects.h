// Whether the tables, views, indexes and triggers of a file are those that pelab makes. Internal to
// migrations; schema.h is the public part. Thread-safe.
#pragma once

#include <SQLiteCpp/SQLiteCpp.h>

#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace pelab::migrations {

// The tokens of an SQL statement with a blank between them, without comments and without the quotes
// around names. Statements that differ only in what ALTER TABLE, a person or another version of
// pelab changes in their text have the same tokens.
std::string TokensOf(std::string_view sql);

// FAILED_PRECONDITION, with `path` and the name of the object, if the file differs from what the
// migrations up to `version` make: somebody has changed or removed something, or added an index to
// a table of pelab, or any trigger. Further tables and views are allowed, and so are their indexes.
// Throws SQLite::Exception.
absl::Status CheckObjects(SQLite::Database& db, const std::string& path, int version);

}  // namespace pelab::migrations
