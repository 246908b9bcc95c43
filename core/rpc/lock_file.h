// The lock FILE.lock beside a database FILE. The one coordinator that writes FILE holds it with
// flock, and stores its address there so that commands can find it. The lock is free as soon as its
// process has died; the lock file itself stays.
#pragma once

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/base/unique_fd.h"

namespace pelab::rpc {

// "runs/pelab.db.lock".
std::string LockPath(const std::string& database);

// Holds the lock for its lifetime. Movable; not thread-safe.
class LockFile {
 public:
  // FAILED_PRECONDITION if another process holds the lock; the message names its address.
  static absl::StatusOr<LockFile> Acquire(const std::string& database);

  // Publishes the address of this coordinator. Call it once the address accepts connections.
  absl::Status WriteAddress(const std::string& address);

 private:
  LockFile(std::string path, UniqueFd fd) : path_(std::move(path)), fd_(std::move(fd)) {}
  std::string path_;
  UniqueFd fd_;
};

// The address of the coordinator that holds the database's lock; "" if it holds the lock but does
// not listen yet; nullopt if nobody holds it.
absl::StatusOr<std::optional<std::string>> ReadLiveAddress(const std::string& database);

}  // namespace pelab::rpc
