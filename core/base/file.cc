#include "core/base/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "core/base/ids.h"
#include "core/base/regular_file.h"
#include "core/base/status.h"

namespace pelab {

namespace fs = std::filesystem;

namespace {

absl::StatusOr<std::string> ReadAll(int fd, const std::string& path, std::size_t max_bytes) {
  std::string data;
  char buffer[64 << 10];
  while (true) {
    const ssize_t got = read(fd, buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return ErrnoStatus(errno, absl::StrCat("cannot read ", path));
    if (got == 0) return data;
    data.append(buffer, static_cast<std::size_t>(got));
    if (data.size() > max_bytes) {
      return absl::ResourceExhaustedError(
          absl::StrCat(path, " is longer than ", max_bytes, " bytes, the most allowed"));
    }
  }
}

}  // namespace

absl::StatusOr<std::string> ReadFile(const std::string& path, std::size_t max_bytes) {
  UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return ErrnoStatus(errno, absl::StrCat("cannot open ", path));
  struct stat info {};
  if (fstat(fd.get(), &info) != 0) return ErrnoStatus(errno, absl::StrCat("cannot read ", path));
  if (S_ISDIR(info.st_mode)) {
    return absl::InvalidArgumentError(
        absl::StrCat("cannot read ", path, ": it is a directory; a file is expected"));
  }
  return ReadAll(fd.get(), path, max_bytes);
}

absl::Status ReadPieces(int fd, absl::string_view path,
                        const std::function<absl::Status(std::string piece)>& use) {
  constexpr std::size_t kPieceBytes = 256 << 10;
  for (;;) {
    std::string piece(kPieceBytes, '\0');
    const ssize_t got = read(fd, piece.data(), piece.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return ErrnoStatus(errno, absl::StrCat("cannot read ", path));
    if (got == 0) return absl::OkStatus();
    piece.resize(static_cast<std::size_t>(got));
    PELAB_RETURN_IF_ERROR(use(std::move(piece)));
  }
}

std::optional<std::uint64_t> BytesOf(int fd) {
  struct stat info {};
  if (fstat(fd, &info) != 0) return std::nullopt;
  return static_cast<std::uint64_t>(info.st_size);
}

absl::Status CheckRegularFile(const std::string& path, absl::string_view wanted) {
  const auto refuse = [&](absl::string_view what) {
    return absl::FailedPreconditionError(absl::StrCat(path, " is ", what, ", not ", wanted));
  };
  std::error_code ignored;  // what cannot be looked at cannot be opened either
  switch (fs::status(path, ignored).type()) {
    case fs::file_type::directory:
      return refuse("a directory");
    case fs::file_type::fifo:
      return refuse("a pipe");
    case fs::file_type::socket:
      return refuse("a socket");
    case fs::file_type::block:
    case fs::file_type::character:
      return refuse("a device");
    default:
      return absl::OkStatus();
  }
}

absl::StatusOr<UniqueFd> OpenRegularFile(const std::string& path) {
  // Without O_NONBLOCK, opening a FIFO would wait for a writer.
  UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW));
  const auto other = [&path] {
    return absl::FailedPreconditionError(
        absl::StrCat("cannot read ", path, ": it is not a regular file"));
  };
  if (!fd && (errno == ELOOP || errno == ENXIO)) return other();  // a symbolic link; a socket
  if (!fd) return ErrnoStatus(errno, absl::StrCat("cannot open ", path));
  struct stat info {};
  if (fstat(fd.get(), &info) != 0) return ErrnoStatus(errno, absl::StrCat("cannot read ", path));
  if (!S_ISREG(info.st_mode)) return other();
  return fd;
}

absl::StatusOr<std::string> ReadRegularFile(const std::string& path, std::size_t max_bytes) {
  PELAB_ASSIGN_OR_RETURN(const UniqueFd fd, OpenRegularFile(path));
  return ReadAll(fd.get(), path, max_bytes);
}

absl::Status WriteFileAtomically(const std::string& path, absl::string_view data, unsigned mode) {
  const std::string temporary = absl::StrCat(path, ".", absl::Hex(RandomToken()), ".tmp");
  absl::Status status = [&]() -> absl::Status {
    UniqueFd fd(open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode));
    if (!fd) return ErrnoStatus(errno, absl::StrCat("cannot create ", path));
    PELAB_RETURN_IF_ERROR(WriteAll(fd.get(), data, path));
    if (fsync(fd.get()) != 0) return ErrnoStatus(errno, absl::StrCat("cannot sync ", path));
    if (rename(temporary.c_str(), path.c_str()) != 0) {
      return ErrnoStatus(errno, absl::StrCat("cannot replace ", path));
    }
    return FsyncDirectory(DirectoryOf(path));
  }();
  if (!status.ok()) unlink(temporary.c_str());
  return status;
}

absl::StatusOr<UniqueFd> CreateNewFile(const std::string& path, unsigned mode) {
  UniqueFd fd(open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode));
  if (!fd) return ErrnoStatus(errno, absl::StrCat("cannot create ", path));
  return fd;
}

absl::Status WriteNewFile(const std::string& path, absl::string_view data, unsigned mode) {
  PELAB_ASSIGN_OR_RETURN(const UniqueFd fd, CreateNewFile(path, mode));
  absl::Status status = WriteAll(fd.get(), data, path);
  if (status.ok() && fsync(fd.get()) != 0) {
    status = ErrnoStatus(errno, absl::StrCat("cannot sync ", path));
  }
  if (status.ok()) status = FsyncDirectory(DirectoryOf(path));
  if (!status.ok()) unlink(path.c_str());
  return status;
}

absl::StatusOr<UniqueFd> OpenForAppend(const std::string& path, unsigned mode) {
  UniqueFd fd(open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, mode));
  if (!fd) return ErrnoStatus(errno, absl::StrCat("cannot open ", path));
  return fd;
}

absl::Status WriteAll(int fd, absl::string_view data, absl::string_view path) {
  while (!data.empty()) {
    const ssize_t written = write(fd, data.data(), data.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return ErrnoStatus(errno, absl::StrCat("cannot write ", path));
    data.remove_prefix(static_cast<std::size_t>(written));
  }
  return absl::OkStatus();
}

absl::Status FsyncDirectory(const std::string& directory) {
  UniqueFd fd(open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd || fsync(fd.get()) != 0)
    return ErrnoStatus(errno, absl::StrCat("cannot sync directory ", directory));
  return absl::OkStatus();
}

absl::Status CreateDirectories(const std::string& path) {
  std::error_code error;
  fs::create_directories(path, error);
  if (error) return ErrnoStatus(error.value(), absl::StrCat("cannot create directory ", path));
  return absl::OkStatus();
}

absl::Status RemoveAll(const std::string& path) {
  std::error_code error;
  fs::remove_all(path, error);
  if (error) return ErrnoStatus(error.value(), absl::StrCat("cannot remove ", path));
  return absl::OkStatus();
}

std::string ResolveLinks(const std::string& path) {
  constexpr int kMostLinks = 40;  // as many as Linux follows
  fs::path at = path;
  for (int links = 0; links < kMostLinks; ++links) {
    std::error_code error;
    const fs::path target = fs::read_symlink(at, error);
    if (error) return at.string();   // no link
    at = at.parent_path() / target;  // the target alone, if it is absolute
  }
  return path;
}

bool IsPlainFileName(absl::string_view name) {
  constexpr std::size_t kMostBytes = 256;
  const auto is_odd = [](char c) {
    return c == '/' || absl::ascii_iscntrl(static_cast<unsigned char>(c));
  };
  return !name.empty() && name.size() <= kMostBytes && name != "." && name != ".." &&
         std::none_of(name.begin(), name.end(), is_odd);
}

std::string DirectoryOf(const std::string& path) {
  const std::string parent = fs::path(path).parent_path().string();
  return parent.empty() ? "." : parent;
}

}  // namespace pelab
