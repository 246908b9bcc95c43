// The schema's migrations in order, embedded at build time. Constants: thread-safe.
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

// Not empty. Programs of tests/support/next_schema have one migration more.
std::span<const Migration> All();

}  // namespace pelab::migrations
