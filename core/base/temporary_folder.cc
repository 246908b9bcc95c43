#include "core/base/temporary_folder.h"

#include <cerrno>
#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "core/base/file.h"
#include "core/base/status.h"

namespace pelab {

absl::StatusOr<TemporaryFolder> TemporaryFolder::Make(const std::string& prefix) {
  std::string path = prefix + "XXXXXX";
  if (mkdtemp(path.data()) != nullptr) return TemporaryFolder(std::move(path));
  return ErrnoStatus(errno, absl::StrCat("cannot make a folder in ", DirectoryOf(prefix)));
}

TemporaryFolder::~TemporaryFolder() {
  if (!path_.empty()) (void)RemoveAll(path_);
}

}  // namespace pelab
