// The lock FILE.lock beside a database FILE. The one coordinator that writes FILE holds it with
// flock, and stores its address there so that commands can find it. The lock is free as soon as its
// process has died; the lock file itself stays.
//
// The holder locks FILE too, because FILE can have several names (hard links), and FILE.lock can be
// removed. SQLite's own locks (fcntl) and flock do not affect each other. But when a process closes
// any descriptor of a file, it loses all of its fcntl locks on the file. So a LockFile must outlive
// every SQLite connection of its process to FILE.
#pragma once

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/base/unique_fd.h"

namespace pelab::rpc {

// "runs/pelab.db.lock".
std::string LockPath(const std::string& database);

// Holds both locks for its lifetime. Movable; not thread-safe.
class LockFile {
 public:
  // Creates FILE.lock, and FILE as an empty file, if they are missing. FAILED_PRECONDITION if
  // another process holds either lock (the message names its address if it is known), or if one of
  // the two is not a regular file, or is a symbolic link (see ResolveLinks).
  static absl::StatusOr<LockFile> Acquire(const std::string& database);

  // Publishes the address of this coordinator. Call it once the address accepts connections.
  absl::Status WriteAddress(const std::string& address);

 private:
  LockFile(std::string path, UniqueFd fd, UniqueFd database)
      : path_(std::move(path)), fd_(std::move(fd)), database_(std::move(database)) {}
  std::string path_;
  UniqueFd fd_;
  UniqueFd database_;
};

// The address of the coordinator that holds the database's lock; "" if it holds the lock but does
// not listen yet; nullopt if nobody holds it.
absl::StatusOr<std::optional<std::string>> ReadLiveAddress(const std::string& database);

}  // namespace pelab::rpc
