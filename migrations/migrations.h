// The schema's migrations, embedded at build time, in order. Constants: thread-safe.
#pragma once

#include <span>
#include <string_view>

namespace pelab::migrations {

struct Migration {
  int version;            // from 1, without gaps; PRAGMA user_version after it
  std::string_view name;  // file name
  std::string_view sql;
};

std::span<const Migration> All();

}  // namespace pelab::migrations
