// The schema's migrations in order, embedded at build time. Constants: thread-safe.
#pragma once

#include <span>
#include <string_view>

namespace pelab::migrations {

struct Migration {
  // From 1, without gaps; the value of PRAGMA user_version after this migration.
  int version;
  std::string_view name;  // file name
  std::string_view sql;
};

std::span<const Migration> All();

}  // namespace pelab::migrations
