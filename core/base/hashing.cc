#include "core/base/hashing.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace pelab {
namespace {

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};

absl::Status FileError(const std::string& path, int error) {
  const std::string message = absl::StrCat("cannot read ", path, ": ", std::strerror(error));
  return error == ENOENT ? absl::NotFoundError(message) : absl::InternalError(message);
}

}  // namespace

absl::StatusOr<FileHash> Sha256File(const std::string& path) {
  std::unique_ptr<std::FILE, CloseFile> file(std::fopen(path.c_str(), "rb"));
  if (file == nullptr) return FileError(path, errno);
  Sha256 hash;
  FileHash result;
  std::vector<char> buffer(std::size_t{1} << 18);
  while (true) {
    errno = 0;
    const std::size_t got = std::fread(buffer.data(), 1, buffer.size(), file.get());
    if (got == 0) break;
    hash.Update({buffer.data(), got});
    result.bytes += got;
  }
  if (std::ferror(file.get()) != 0) return FileError(path, errno);
  result.sha256 = hash.FinishHex();
  return result;
}

}  // namespace pelab
