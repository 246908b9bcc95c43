#include "worker/agent/store_transfer.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <optional>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "core/base/file.h"
#include "core/base/ids.h"
#include "core/base/log.h"
#include "core/base/regular_file.h"
#include "core/base/sha256.h"
#include "core/base/status.h"
#include "core/base/unique_fd.h"
#include "worker/agent/incoming_file.h"

namespace pelab::agent {
namespace {

constexpr std::size_t kPieceBytes = 1 << 20;

absl::Status Copy(const std::string& from, const std::function<bool()>& give_up,
                  IncomingFile* incoming) {
  PELAB_ASSIGN_OR_RETURN(const UniqueFd fd, OpenRegularFile(from));
  PELAB_RETURN_IF_ERROR(incoming->Open());
  std::string buffer(kPieceBytes, '\0');
  while (true) {
    if (give_up()) return absl::CancelledError("the copy was given up");
    const ssize_t got = read(fd.get(), buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return ErrnoStatus(errno, absl::StrCat("cannot read ", from));
    if (got == 0) return incoming->Commit();
    PELAB_RETURN_IF_ERROR(incoming->Write({buffer.data(), static_cast<std::size_t>(got)}));
  }
}

}  // namespace

StoreTransfer::StoreTransfer(std::string directory, FleetClient* fleet)
    : directory_(std::move(directory)), fleet_(fleet) {}

absl::StatusOr<std::string> StoreTransfer::PathOf(const std::string& sha256) const {
  const std::optional<std::string> place = PlaceOfHash(sha256);
  if (place) return absl::StrCat(directory_, "/", *place);
  return absl::InvalidArgumentError(absl::StrCat(
      "a file is named \"", absl::CHexEscape(sha256.substr(0, 80)), "\", which is no SHA-256"));
}

absl::Status StoreTransfer::PutThere(const ArtifactFile& file,
                                     const std::function<bool()>& give_up) const {
  PELAB_ASSIGN_OR_RETURN(const std::string path, PathOf(file.sha256));
  struct stat info {};
  if (stat(path.c_str(), &info) == 0 && static_cast<std::uint64_t>(info.st_size) == file.bytes) {
    // The file is there already. Update its time, so that it is not deleted as unused before it is
    // announced.
    if (utimensat(AT_FDCWD, path.c_str(), nullptr, 0) == 0) return absl::OkStatus();
  }
  const std::string folder = DirectoryOf(path);
  PELAB_RETURN_IF_ERROR(CreateDirectories(folder));
  IncomingFile incoming(file, path, absl::StrCat(folder, "/.put-", RandomUuid()), "the disk");
  return Copy(file.path, give_up, &incoming);
}

absl::Status StoreTransfer::GetThere(const ArtifactFile& file,
                                     const std::function<bool()>& give_up) const {
  PELAB_ASSIGN_OR_RETURN(const std::string path, PathOf(file.sha256));
  IncomingFile incoming(file, file.path, absl::StrCat(file.path, ".part"), "the artifact store");
  return Copy(path, give_up, &incoming);
}

void StoreTransfer::Complain(const absl::Status& status) {
  if (complained_.exchange(true)) return;
  spdlog::warn("artifact store {}: {}; files go through the coordinator", directory_,
               std::string(status.message()));
}

absl::Status StoreTransfer::Put(const ArtifactFile& file, const std::function<bool()>& give_up) {
  absl::Status put = PutThere(file, give_up);
  if (put.ok()) {
    absl::Status announced = fleet_->Announce(file);
    if (!absl::IsNotFound(announced)) return announced;
    Complain(announced);
  } else {
    if (give_up()) return put;
    Complain(put);
  }
  return fleet_->Put(file, give_up);
}

absl::Status StoreTransfer::Get(const ArtifactFile& file, const std::function<bool()>& give_up) {
  absl::Status got = GetThere(file, give_up);
  if (got.ok() || give_up()) return got;
  spdlog::debug("artifact store {}: {}", directory_, std::string(got.message()));
  return fleet_->Get(file, give_up);
}

}  // namespace pelab::agent
