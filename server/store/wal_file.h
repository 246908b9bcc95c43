// What an earlier process has left in the write-ahead log.
#pragma once

#include <string>

#include "absl/status/status.h"

namespace pelab::store {

// Writes the WAL of the database over itself and syncs it. Where a sync of an earlier process failed,
// the kernel takes what it did not write for clean: it is read, and SQLite takes it for committed,
// but no later sync makes it durable, and a power loss would take everything that was committed
// after it as well. Written again, it is durable.
//
// `vfs` names a registered SQLite VFS; empty: the system's. For the only process that writes the
// database, before it writes. Nothing happens where there is no WAL.
absl::Status RewriteWal(const std::string& database, const std::string& vfs);

}  // namespace pelab::store
