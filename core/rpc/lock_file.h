// FILE.lock beside a database: held with flock by the one coordinator that writes FILE, and naming
// its address, so that commands find it. A lock of a process that has died is free at once; the
// file itself stays.
#pragma once

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/base/unique_fd.h"

namespace pelab::rpc {

// "runs/pelab.db.lock".
std::string LockPath(const std::string& database);

// Holds the lock while it lives. Movable; not thread-safe.
class LockFile {
 public:
  // FAILED_PRECONDITION where another process holds it, naming its address.
  static absl::StatusOr<LockFile> Acquire(const std::string& database);

  // Tells others where this coordinator listens; call it once the address accepts connections.
  absl::Status WriteAddress(const std::string& address);

 private:
  LockFile(std::string path, UniqueFd fd) : path_(std::move(path)), fd_(std::move(fd)) {}
  std::string path_;
  UniqueFd fd_;
};

// The address of the coordinator that holds the database's lock; "" where it holds the lock but
// does not listen yet; nullopt where nobody holds it.
absl::StatusOr<std::optional<std::string>> ReadLiveAddress(const std::string& database);

}  // namespace pelab::rpc
