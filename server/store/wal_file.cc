#include "server/store/wal_file.h"

#include <sqlite3.h>

#include <algorithm>
#include <cstddef>
#include <vector>

#include "absl/strings/str_cat.h"

namespace pelab::store {
namespace {

// One write through SQLite's own VFS must be smaller than 128 KiB. Of a larger one, the VFS writes
// only the remainder after division by 128 KiB, and then reports a full disk.
constexpr sqlite3_int64 kChunk = 1 << 16;

// An open file of a VFS. The destructor closes it.
class VfsFile {
 public:
  VfsFile(sqlite3_vfs* vfs, const char* path)
      : memory_(vfs->szOsFile), rc_(vfs->xOpen(vfs, path, get(), kFlags, nullptr)) {}
  ~VfsFile() {
    if (get()->pMethods != nullptr) get()->pMethods->xClose(get());
  }
  VfsFile(const VfsFile&) = delete;
  VfsFile& operator=(const VfsFile&) = delete;

  // Reads and writes the whole file. Returns SQLITE_OK or the first error.
  int RewriteAll() {
    sqlite3_int64 size = 0;
    if (rc_ == SQLITE_OK) rc_ = get()->pMethods->xFileSize(get(), &size);
    std::vector<char> chunk(static_cast<std::size_t>(std::min(size, kChunk)));
    for (sqlite3_int64 at = 0; rc_ == SQLITE_OK && at < size; at += kChunk) {
      const int bytes = static_cast<int>(std::min(size - at, kChunk));
      rc_ = get()->pMethods->xRead(get(), chunk.data(), bytes, at);
      if (rc_ == SQLITE_OK) rc_ = get()->pMethods->xWrite(get(), chunk.data(), bytes, at);
    }
    if (rc_ == SQLITE_OK && size > 0) rc_ = get()->pMethods->xSync(get(), SQLITE_SYNC_FULL);
    return rc_;
  }

 private:
  static constexpr int kFlags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_WAL;
  sqlite3_file* get() { return reinterpret_cast<sqlite3_file*>(memory_.data()); }

  std::vector<char> memory_;  // zeros: not open
  int rc_;
};

}  // namespace

absl::Status RewriteWal(const std::string& database, const std::string& vfs) {
  sqlite3_vfs* const found = sqlite3_vfs_find(vfs.empty() ? nullptr : vfs.c_str());
  if (found == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat("no SQLite VFS \"", vfs, "\" is registered"));
  }
  const std::string path = absl::StrCat(database, "-wal");
  int there = 0;
  if (found->xAccess(found, path.c_str(), SQLITE_ACCESS_EXISTS, &there) != SQLITE_OK || !there) {
    return absl::OkStatus();
  }
  // A VFS requires a name that is followed by URI parameters. Here the list of parameters is empty.
  const std::string name = path + std::string(2, '\0');
  const int rc = VfsFile(found, name.c_str()).RewriteAll();
  if (rc == SQLITE_OK) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrCat("cannot write ", path, ": ", sqlite3_errstr(rc)));
}

}  // namespace pelab::store
