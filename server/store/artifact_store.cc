#include "server/store/artifact_store.h"

#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "core/base/file.h"
#include "core/base/status.h"

namespace pelab::store {
namespace {

namespace fs = std::filesystem;

std::string HostName() {
  char name[HOST_NAME_MAX + 1] = {};
  return gethostname(name, sizeof name - 1) == 0 ? name : "localhost";
}

absl::Status SetMode(const std::string& path, mode_t mode) {
  if (chmod(path.c_str(), mode) == 0) return absl::OkStatus();
  return ErrnoStatus(errno, absl::StrCat("cannot set the mode of ", path));
}

// Marks the store as this database's. Two databases in one store would remove each other's files.
absl::Status Own(const std::string& directory, const std::string& database, mode_t mode) {
  std::error_code error;
  const std::string self =
      absl::StrCat(HostName(), ":", fs::weakly_canonical(fs::absolute(database), error).string());
  const std::string path = absl::StrCat(directory, "/database");
  const absl::StatusOr<std::string> owner = ReadFile(path, 8192);
  if (absl::IsNotFound(owner.status())) {
    PELAB_RETURN_IF_ERROR(WriteFileAtomically(path, absl::StrCat(self, "\n")));
    return SetMode(path, mode);
  }
  if (!owner.ok()) return owner.status();
  if (const auto text = absl::StripAsciiWhitespace(*owner); text != self) {
    return absl::FailedPreconditionError(
        absl::StrCat("artifact store ", directory, " belongs to ", text, ", not to ", self,
                     "; one store a database (where the database has moved, remove ", path, ")"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CreateFolder(const std::string& folder, const SharedStore& store) {
  std::error_code error;
  if (fs::is_directory(folder, error)) return absl::OkStatus();
  PELAB_RETURN_IF_ERROR(CreateDirectories(folder));
  const absl::Status status = SetMode(folder, store.folder_mode());
  // A worker of another user has made the folder meanwhile, with a mode of its own.
  return absl::IsPermissionDenied(status) ? absl::OkStatus() : status;
}

absl::Status LinkToStore(const std::string& link, const std::string& database,
                         const SharedStore& store) {
  PELAB_RETURN_IF_ERROR(CreateFolder(store.directory, store));
  std::error_code error;
  const fs::path target = fs::canonical(store.directory, error);
  if (error) {
    return ErrnoStatus(error.value(),
                       absl::StrCat("cannot use the artifact store ", store.directory));
  }
  PELAB_RETURN_IF_ERROR(Own(target.string(), database, store.file_mode()));
  const fs::file_status status = fs::symlink_status(link, error);
  if (fs::is_symlink(status)) {
    if (fs::canonical(link, error) == target) return absl::OkStatus();
    return absl::FailedPreconditionError(
        absl::StrCat(link, " leads to ", fs::read_symlink(link, error).string(),
                     ", but --artifact-store names ", target.string()));
  }
  if (fs::exists(status)) {
    // rmdir removes an empty directory only.
    if (rmdir(link.c_str()) != 0) {
      return absl::FailedPreconditionError(
          absl::StrCat(link, " holds files already: move what is in it to ", target.string(),
                       " and remove it to use --artifact-store"));
    }
  }
  fs::create_directory_symlink(target, link, error);
  if (error) return ErrnoStatus(error.value(), absl::StrCat("cannot create the link ", link));
  return FsyncDirectory(DirectoryOf(link));
}

}  // namespace pelab::store
