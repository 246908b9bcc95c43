// Repair of the write-ahead log that an earlier process has left.
#pragma once

#include <string>

#include "absl/status/status.h"

namespace pelab::store {

// Writes the WAL of the database over itself and syncs it. If a sync of an earlier process failed,
// the kernel may mark pages as clean that were never written to the disk. Reading such a WAL
// succeeds, so SQLite takes its content for committed. But no later sync makes it durable, and a
// power loss would destroy everything that was committed after it too. Rewriting makes it durable.
//
// `vfs` names a registered SQLite VFS; empty: the default one. Only the process that alone writes
// the database may call this, before it writes. Does nothing if there is no WAL.
absl::Status RewriteWal(const std::string& database, const std::string& vfs);

}  // namespace pelab::store
