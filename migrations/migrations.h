// The schema's migrations in order, and what they make: the first are embedded at build time, the
// second is read from a database that they have made at build time (write_objects.cc). Constants:
// thread-safe. Programs of tests/support/next_schema have one migration more.
#pragma once

#include <span>
#include <string_view>

namespace pelab::migrations {

struct Migration {
  // PRAGMA user_version after this migration: kFirstSchema for the first, then without gaps.
  int version;
  std::string_view name;  // file name
  std::string_view sql;
};

// Not empty.
std::span<const Migration> All();

// A row of sqlite_master.
struct Object {
  int first;  // the schemas from this version to the last one have the object
  int last;
  std::string_view type;  // "table", "view" or "index"
  std::string_view name;
  std::string_view table;  // that of an index; otherwise the object's own name
  std::string_view sql;    // empty for what SQLite makes itself
};

// First those of the newest schema, in an order in which they can be made.
std::span<const Object> Objects();

// Inserts the rows that a new database has. SQL statements; empty if there are none.
std::string_view FirstRows();

}  // namespace pelab::migrations
