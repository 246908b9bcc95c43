#include "core/rpc/lock_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/base/file.h"
#include "core/base/regular_file.h"
#include "core/base/status.h"

namespace pelab::rpc {
namespace {

constexpr std::size_t kMaxAddressBytes = 4096;

// Readers briefly hold a shared lock to see whether anybody holds the exclusive one, so Acquire
// retries.
constexpr int kTries = 25;
constexpr absl::Duration kPause = absl::Milliseconds(20);

// Never waits for the other end of a pipe, and never follows a link.
absl::StatusOr<UniqueFd> OpenToLock(const std::string& path, int flags) {
  UniqueFd fd(open(path.c_str(), flags | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC, 0644));
  const auto other = [&path] {
    return absl::FailedPreconditionError(
        absl::StrCat("cannot use ", path, ": it is not a regular file; remove it"));
  };
  if (!fd && (errno == ELOOP || errno == ENXIO)) return other();  // a symbolic link; a socket
  if (!fd) return ErrnoStatus(errno, absl::StrCat("cannot open ", path));
  struct stat info {};
  if (fstat(fd.get(), &info) != 0) return ErrnoStatus(errno, absl::StrCat("cannot open ", path));
  if (!S_ISREG(info.st_mode)) return other();
  return fd;
}

absl::StatusOr<std::string> ReadFirstLine(const std::string& path) {
  PELAB_ASSIGN_OR_RETURN(const std::string text, ReadRegularFile(path, kMaxAddressBytes));
  const std::size_t end = text.find('\n');
  return end == std::string::npos ? std::string()
                                  : text.substr(0, end);  // no newline: half written
}

absl::Status HeldBy(const std::string& database, const std::string& path) {
  const absl::StatusOr<std::string> address = ReadFirstLine(path);
  return absl::FailedPreconditionError(absl::StrCat(database, " is already served by a coordinator",
                                                    address.ok() && !address->empty()
                                                        ? absl::StrCat(" at ", *address)
                                                        : " that is just starting"));
}

// Reading is enough for a lock, so the file may be read-only.
absl::StatusOr<UniqueFd> LockDatabase(const std::string& database) {
  PELAB_RETURN_IF_ERROR(CheckRegularFile(database, "a pelab database"));
  PELAB_ASSIGN_OR_RETURN(UniqueFd fd, OpenToLock(database, O_RDONLY | O_CREAT));
  if (flock(fd.get(), LOCK_EX | LOCK_NB) == 0) return fd;
  if (errno != EWOULDBLOCK) return ErrnoStatus(errno, absl::StrCat("cannot lock ", database));
  return absl::FailedPreconditionError(
      absl::StrCat(database,
                   " is already served by a coordinator, through another name of the "
                   "file, or ",
                   LockPath(database), " was removed"));
}

}  // namespace

std::string LockPath(const std::string& database) { return absl::StrCat(database, ".lock"); }

absl::StatusOr<LockFile> LockFile::Acquire(const std::string& database) {
  std::string path = LockPath(database);
  PELAB_ASSIGN_OR_RETURN(UniqueFd fd, OpenToLock(path, O_RDWR | O_CREAT));
  for (int tries = 0; flock(fd.get(), LOCK_EX | LOCK_NB) != 0; ++tries) {
    if (errno != EWOULDBLOCK && errno != EINTR)
      return ErrnoStatus(errno, absl::StrCat("cannot lock ", path));
    if (tries == kTries) return HeldBy(database, path);
    absl::SleepFor(kPause);
  }
  PELAB_ASSIGN_OR_RETURN(UniqueFd file, LockDatabase(database));
  if (ftruncate(fd.get(), 0) != 0) return ErrnoStatus(errno, absl::StrCat("cannot write ", path));
  return LockFile(std::move(path), std::move(fd), std::move(file));
}

absl::Status LockFile::WriteAddress(const std::string& address) {
  const std::string line = absl::StrCat(address, "\n", getpid(), "\n");
  if (ftruncate(fd_.get(), 0) != 0 || lseek(fd_.get(), 0, SEEK_SET) != 0) {
    return ErrnoStatus(errno, absl::StrCat("cannot write ", path_));
  }
  return WriteAll(fd_.get(), line, path_);
}

absl::StatusOr<std::optional<std::string>> ReadLiveAddress(const std::string& database) {
  const std::string path = LockPath(database);
  const absl::StatusOr<UniqueFd> fd = OpenToLock(path, O_RDONLY);
  if (absl::IsNotFound(fd.status())) return std::nullopt;
  PELAB_RETURN_IF_ERROR(fd.status());
  if (flock(fd->get(), LOCK_SH | LOCK_NB) == 0) return std::nullopt;
  if (errno != EWOULDBLOCK) return ErrnoStatus(errno, absl::StrCat("cannot lock ", path));
  PELAB_ASSIGN_OR_RETURN(std::string address, ReadFirstLine(path));
  return std::optional<std::string>(std::move(address));
}

}  // namespace pelab::rpc
