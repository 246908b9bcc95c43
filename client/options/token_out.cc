#include "client/options/token_out.h"

#include <unistd.h>

#include <cerrno>
#include <utility>

#include "core/base/file.h"
#include "core/base/status.h"
#include "core/base/strings.h"

namespace pelab::client {

absl::StatusOr<std::unique_ptr<TokenOut>> TokenOut::Create(const std::string& path) {
  if (path.empty()) return nullptr;
  absl::StatusOr<UniqueFd> fd = CreateNewFile(path, 0600);
  if (!fd.ok()) return Annotate(fd.status(), "--token-out");
  return std::unique_ptr<TokenOut>(new TokenOut(path, *std::move(fd)));
}

TokenOut::TokenOut(std::string path, UniqueFd fd) : path_(std::move(path)), fd_(std::move(fd)) {}

TokenOut::~TokenOut() {
  if (!written_) unlink(path_.c_str());
}

absl::Status TokenOut::Write(const std::string& token) {
  PELAB_RETURN_IF_ERROR(WriteAll(fd_.get(), Concat(token, "\n"), path_));
  if (fsync(fd_.get()) != 0) return ErrnoStatus(errno, Concat("cannot sync ", path_));
  PELAB_RETURN_IF_ERROR(FsyncDirectory(DirectoryOf(path_)));
  written_ = true;
  return absl::OkStatus();
}

}  // namespace pelab::client
