#include "client/source/download.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <utility>

#include "client/options/out_file.h"
#include "core/base/file.h"
#include "core/base/sha256.h"
#include "core/base/status.h"
#include "core/base/strings.h"
#include "core/base/unique_fd.h"

namespace pelab::client {
namespace {

// A temporary file that the destructor removes unless Keep succeeded.
class Temporary {
 public:
  static absl::StatusOr<Temporary> Beside(const std::string& path) {
    std::string name = path + ".XXXXXX";
    const int fd = mkostemp(name.data(), O_CLOEXEC);
    if (fd < 0) return ErrnoStatus(errno, Concat("cannot write ", path));
    return Temporary(std::move(name), UniqueFd(fd));
  }
  Temporary(Temporary&& other) noexcept
      : name_(std::exchange(other.name_, "")), fd_(std::move(other.fd_)) {}
  ~Temporary() {
    if (!name_.empty()) unlink(name_.c_str());
  }

  absl::Status Write(const std::string& piece) { return WriteAll(fd_.get(), piece, name_); }
  // Renames the file to `path` atomically. Replaces an existing file only with `force`.
  absl::Status Keep(const std::string& path, bool force) {
    if (fchmod(fd_.get(), 0644) != 0 || fsync(fd_.get()) != 0)
      return ErrnoStatus(errno, Concat("cannot write ", path));
    if (Rename(path, force) != 0) {
      return errno == EEXIST ? IsThere(path) : ErrnoStatus(errno, Concat("cannot write ", path));
    }
    name_.clear();
    return FsyncDirectory(DirectoryOf(path));
  }
  static absl::Status IsThere(const std::string& path) {
    return absl::AlreadyExistsError(Concat(path, " already exists; --force replaces it"));
  }

 private:
  Temporary(std::string name, UniqueFd fd) : name_(std::move(name)), fd_(std::move(fd)) {}

  int Rename(const std::string& path, bool force) const {
    if (force) return rename(name_.c_str(), path.c_str());
    const int result = renameat2(AT_FDCWD, name_.c_str(), AT_FDCWD, path.c_str(), RENAME_NOREPLACE);
    // Some file systems do not support RENAME_NOREPLACE; Download has already checked that `path`
    // is free.
    return result != 0 && errno == EINVAL ? rename(name_.c_str(), path.c_str()) : result;
  }

  std::string name_;
  UniqueFd fd_;
};

}  // namespace

absl::Status Download(DataSource& source, const v1::ArtifactRow& row, const std::string& out,
                      bool force) {
  PELAB_ASSIGN_OR_RETURN(const std::string path, FileToWrite(out, force));
  PELAB_ASSIGN_OR_RETURN(Temporary file, Temporary::Beside(path));
  Sha256 hash;
  std::uint64_t bytes = 0;
  const auto keep = [&](const std::string& piece) -> absl::Status {
    bytes += piece.size();
    if (bytes > row.bytes()) {
      return absl::DataLossError(Concat(source.Description(), " sends more than the ", row.bytes(),
                                        " bytes that it announced of ", row.name(), " (job ",
                                        row.job_id(), ")"));
    }
    hash.Update(piece);
    return file.Write(piece);
  };
  PELAB_RETURN_IF_ERROR(source.ReadArtifact(row.sha256(), keep));
  const std::string sha256 = hash.FinishHex();
  if (sha256 != row.sha256() || bytes != row.bytes()) {
    return absl::DataLossError(Concat("the stored file ", row.name(), " of job ", row.job_id(),
                                      " is damaged: ", bytes, " bytes with sha256 ", sha256,
                                      ", not ", row.bytes(), " with ", row.sha256()));
  }
  return file.Keep(path, force);
}

}  // namespace pelab::client
