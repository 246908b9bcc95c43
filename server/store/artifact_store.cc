#include "server/store/artifact_store.h"

#include <limits.h>
#include <unistd.h>

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

// Marks the store as this database's. Two databases in one store would remove each other's files.
absl::Status Own(const std::string& store, const std::string& database) {
  std::error_code error;
  const std::string self =
      absl::StrCat(HostName(), ":", fs::weakly_canonical(fs::absolute(database), error).string());
  const std::string path = absl::StrCat(store, "/database");
  const absl::StatusOr<std::string> owner = ReadFile(path, 8192);
  if (absl::IsNotFound(owner.status())) {
    return WriteFileAtomically(path, absl::StrCat(self, "\n"));
  }
  if (!owner.ok()) return owner.status();
  if (const auto text = absl::StripAsciiWhitespace(*owner); text != self) {
    return absl::FailedPreconditionError(
        absl::StrCat("artifact store ", store, " belongs to ", text, ", not to ", self,
                     "; one store a database (where the database has moved, remove ", path, ")"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status LinkToStore(const std::string& link, const std::string& database,
                         const std::string& store) {
  PELAB_RETURN_IF_ERROR(CreateDirectories(store));
  std::error_code error;
  const fs::path target = fs::canonical(store, error);
  if (error)
    return ErrnoStatus(error.value(), absl::StrCat("cannot use the artifact store ", store));
  PELAB_RETURN_IF_ERROR(Own(target.string(), database));
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
