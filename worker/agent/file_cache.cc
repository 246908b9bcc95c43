#include "worker/agent/file_cache.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <utility>

#include "absl/status/statusor.h"
#include "core/base/file.h"
#include "core/base/hashing.h"
#include "core/base/log.h"
#include "core/base/status.h"

namespace pelab::agent {
namespace {

constexpr auto kFileAge = std::chrono::hours(30 * 24);

}  // namespace

bool FileCache::Has(const v1::NeededFile& file) {
  if (!IsSha256(file.sha256())) return false;
  const std::string path = PathOf(file.sha256());
  struct stat info {};
  if (lstat(path.c_str(), &info) != 0 || !S_ISREG(info.st_mode)) return false;
  bool checked = false;
  {
    MutexLock lock(&mutex_);
    checked = checked_.count(file.sha256()) != 0;
  }
  if (!checked) {
    const absl::StatusOr<FileHash> hash = Sha256File(path);
    if (!hash.ok() || hash->sha256 != file.sha256()) {
      spdlog::warn("{} is damaged; it is fetched again", path);
      return false;
    }
    MutexLock lock(&mutex_);
    checked_.insert(file.sha256());
  }
  utimensat(AT_FDCWD, path.c_str(), nullptr, 0);  // else it looks unused; harmless
  return true;
}

absl::Status FileCache::Put(const std::string& fetched, const std::string& sha256) {
  PELAB_RETURN_IF_ERROR(CreateDirectories(directory_));
  const std::string path = PathOf(sha256);
  if (std::rename(fetched.c_str(), path.c_str()) != 0) {
    return ErrnoStatus(errno, "cannot rename to " + path);
  }
  PELAB_RETURN_IF_ERROR(FsyncDirectory(directory_));
  MutexLock lock(&mutex_);
  checked_.insert(sha256);
  return absl::OkStatus();
}

void FileCache::RemoveOld() const {
  namespace fs = std::filesystem;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(directory_, error)) {
    std::error_code ignored;
    const auto age = fs::file_time_type::clock::now() - fs::last_write_time(entry.path(), ignored);
    if (ignored || age < kFileAge) continue;
    spdlog::info("removing a file that no attempt has used for 30 days: {}", entry.path().string());
    if (const absl::Status status = RemoveAll(entry.path().string()); !status.ok()) {
      spdlog::warn("{}", std::string(status.message()));
    }
  }
}

}  // namespace pelab::agent
