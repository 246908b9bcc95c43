// A database without rows, as a file.
#pragma once

#include <filesystem>
#include <string>

#include "server/store/store.h"
#include "tests/fuzz/fuzz.h"
#include "tests/support/temp_dir.h"

namespace pelab::fuzz {

// Removes the database at `path`, with what SQLite has left beside it.
inline void RemoveDatabase(const std::string& path) {
  for (const char* end : {"", "-wal", "-shm", "-journal"}) std::filesystem::remove(path + end);
}

// Returns the path of a database without rows. The one from the call before must be closed, and is
// removed. To copy a database takes far less time than to bring an empty file to the current
// schema, migration by migration. For one thread.
inline std::string EmptyDatabase() {
  static const TempDir directory;
  static const std::string original = [] {
    std::string path = directory / "original.db";
    const auto store = store::Store::Open(path);
    Require(store.ok(), "the database can be made", store.status().ToString());
    (*store)->Checkpoint(/*truncate=*/true);
    return path;
  }();
  std::string path = directory / "empty.db";
  RemoveDatabase(path);
  std::filesystem::copy_file(original, path);
  return path;
}

}  // namespace pelab::fuzz
