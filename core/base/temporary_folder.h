// A folder with a name of its own, which goes with the object that made it.
#pragma once

#include <string>
#include <utility>

#include "absl/status/statusor.h"

namespace pelab {

// Movable; not thread-safe.
class TemporaryFolder {
 public:
  // Makes the folder `prefix` with six random letters; only this user can open it (mode 0700).
  static absl::StatusOr<TemporaryFolder> Make(const std::string& prefix);

  TemporaryFolder(TemporaryFolder&& other) noexcept : path_(std::exchange(other.path_, "")) {}
  TemporaryFolder& operator=(TemporaryFolder&& other) noexcept {
    std::swap(path_, other.path_);
    return *this;
  }
  ~TemporaryFolder();  // removes the folder with everything in it

  const std::string& path() const { return path_; }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }
  // The folder is somebody else's from now on, for instance under another name.
  void Release() { path_.clear(); }

 private:
  explicit TemporaryFolder(std::string path) : path_(std::move(path)) {}

  std::string path_;  // empty: none
};

}  // namespace pelab
