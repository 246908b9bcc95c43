#include "client/export/folder.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>

#include "core/base/file.h"
#include "core/base/status.h"
#include "core/base/strings.h"

namespace pelab::client {
namespace fs = std::filesystem;

absl::Status CheckFree(const std::string& path, bool force) {
  std::error_code error;
  const fs::file_status status = fs::symlink_status(path, error);
  if (status.type() == fs::file_type::not_found) {
    const std::string parent = DirectoryOf(path);
    if (fs::is_directory(parent, error)) return absl::OkStatus();
    return absl::NotFoundError(Concat("cannot write ", path, ": there is no directory ", parent));
  }
  const bool is_folder = fs::is_directory(path, error);
  if (force && is_folder) return absl::OkStatus();
  if (status.type() == fs::file_type::directory && fs::is_empty(path, error) && !error) {
    return absl::OkStatus();
  }
  return absl::AlreadyExistsError(
      Concat(path, " is there already; name a directory that is not there, or an empty one"));
}

std::string WithoutSlash(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  return path;
}

absl::StatusOr<std::unique_ptr<ExportFolder>> ExportFolder::Create(const std::string& asked) {
  const std::string path = WithoutSlash(asked);
  PELAB_RETURN_IF_ERROR(CheckFree(path));
  PELAB_ASSIGN_OR_RETURN(TemporaryFolder partial, TemporaryFolder::Make(path + ".partial-"));
  return std::unique_ptr<ExportFolder>(new ExportFolder(path, std::move(partial)));
}

absl::Status ExportFolder::Begin(const std::string& name) {
  file_path_ = partial_ / name;
  PELAB_RETURN_IF_ERROR(CreateDirectories(DirectoryOf(file_path_)));
  fd_.Reset(open(file_path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
  if (!fd_) return ErrnoStatus(errno, Concat("cannot write ", file_path_));
  files_.push_back({.name = name, .rows = 0, .bytes = 0, .sha256 = ""});
  return absl::OkStatus();
}

absl::Status ExportFolder::Append(std::string_view text) {
  hash_.Update(text);
  files_.back().bytes += text.size();
  return WriteAll(fd_.get(), {text.data(), text.size()}, file_path_);
}

absl::Status ExportFolder::End() {
  if (fsync(fd_.get()) != 0) return ErrnoStatus(errno, Concat("cannot write ", file_path_));
  fd_.Reset();
  files_.back().sha256 = hash_.FinishHex();
  return FsyncDirectory(DirectoryOf(file_path_));
}

absl::Status ExportFolder::Write(const std::string& name, std::string_view text) {
  PELAB_RETURN_IF_ERROR(Begin(name));
  PELAB_RETURN_IF_ERROR(Append(text));
  return End();
}

absl::Status ExportFolder::Publish() {
  std::string sums;
  for (const WrittenFile& file : files_) sums += Concat(file.sha256, "  ", file.name, "\n");
  PELAB_RETURN_IF_ERROR(Write("SHA256SUMS", sums));
  if (chmod(partial_.path().c_str(), 0755) != 0) {
    return ErrnoStatus(errno, Concat("cannot write ", partial_.path()));
  }
  PELAB_RETURN_IF_ERROR(FsyncDirectory(partial_.path()));
  // The rename succeeds only if the target does not exist or is an empty directory.
  if (rename(partial_.path().c_str(), path_.c_str()) != 0) {
    if (errno == ENOTEMPTY || errno == EEXIST || errno == ENOTDIR) return CheckFree(path_);
    return ErrnoStatus(errno, Concat("cannot write ", path_));
  }
  partial_.Release();
  return FsyncDirectory(DirectoryOf(path_));
}

}  // namespace pelab::client
