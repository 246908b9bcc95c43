#include "server/store/artifact_files.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/base/file.h"
#include "core/base/ids.h"
#include "core/base/status.h"

namespace pelab::store {
namespace {

namespace fs = std::filesystem;
constexpr char kTemporary[] = ".upload-";

}  // namespace

bool IsSha256(absl::string_view text) {
  return text.size() == 64 && std::all_of(text.begin(), text.end(), [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
         });
}

absl::Status CheckSha256(absl::string_view text) {
  if (IsSha256(text)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "sha256 must be 64 lower-case hexadecimal digits, not \"", text.substr(0, 80), "\""));
}

absl::StatusOr<std::unique_ptr<ArtifactFiles>> ArtifactFiles::Open(const std::string& database,
                                                                   std::uint64_t quota_bytes) {
  std::unique_ptr<ArtifactFiles> files(
      new ArtifactFiles(absl::StrCat(database, ".artifacts"), quota_bytes));
  PELAB_RETURN_IF_ERROR(files->Scan());
  return files;
}

absl::Status ArtifactFiles::Scan() {
  std::error_code error;
  if (!fs::exists(directory_, error)) return absl::OkStatus();
  for (fs::recursive_directory_iterator it(directory_, error), end; !error && it != end;
       it.increment(error)) {
    if (!it->is_regular_file(error)) continue;
    if (absl::StartsWith(it->path().filename().string(), kTemporary)) {
      fs::remove(it->path(), error);
    } else {
      used_ += it->file_size(error);
    }
  }
  if (error) {
    return absl::InternalError(absl::StrCat("cannot read ", directory_, ": ", error.message()));
  }
  return absl::OkStatus();
}

std::string ArtifactFiles::PathOf(const std::string& sha256) const {
  return absl::StrCat(directory_, "/", sha256.substr(0, 2), "/", sha256);
}

bool ArtifactFiles::Has(const std::string& sha256) const {
  std::error_code error;
  return fs::exists(PathOf(sha256), error);
}

ArtifactFiles::Hold ArtifactFiles::HoldAll() {
  holds_.fetch_add(1);
  return {static_cast<void*>(this), [this](void*) { holds_.fetch_sub(1); }};
}

absl::StatusOr<std::unique_ptr<ArtifactFiles::Upload>> ArtifactFiles::Begin(
    const std::string& sha256, std::uint64_t bytes) {
  std::uint64_t used = used_.load();
  do {
    if (bytes > quota_ || used > quota_ - bytes) {
      return absl::ResourceExhaustedError(
          absl::StrCat("artifacts use ", used, " of their quota of ", quota_,
                       " bytes; there is no room for ", bytes, " more (--artifact-quota)"));
    }
  } while (!used_.compare_exchange_weak(used, used + bytes));
  std::unique_ptr<Upload> upload(new Upload(*this, sha256, bytes));
  const std::string parent = DirectoryOf(PathOf(sha256));
  PELAB_RETURN_IF_ERROR(CreateDirectories(parent));
  upload->temporary_ = absl::StrCat(parent, "/", kTemporary, RandomUuid());
  PELAB_ASSIGN_OR_RETURN(upload->fd_, OpenForAppend(upload->temporary_));
  return upload;
}

ArtifactFiles::Upload::Upload(ArtifactFiles& files, std::string sha256, std::uint64_t bytes)
    : files_(files), sha256_(std::move(sha256)), bytes_(bytes) {}

ArtifactFiles::Upload::~Upload() {
  if (committed_) return;
  files_.used_ -= bytes_;
  if (fd_) unlink(temporary_.c_str());
}

absl::Status ArtifactFiles::Upload::Write(absl::string_view bytes) {
  written_ += bytes.size();
  if (written_ > bytes_) {
    return absl::InvalidArgumentError(
        absl::StrCat("the upload is longer than its announced ", bytes_, " bytes"));
  }
  hash_.Update({bytes.data(), bytes.size()});
  return WriteAll(fd_.get(), bytes, temporary_);
}

absl::Status ArtifactFiles::Upload::Commit() {
  if (written_ != bytes_) {
    return absl::InvalidArgumentError(
        absl::StrCat("the upload has ", written_, " bytes; ", bytes_, " were announced"));
  }
  if (const std::string hash = hash_.FinishHex(); hash != sha256_) {
    return absl::InvalidArgumentError(
        absl::StrCat("the upload's SHA-256 is ", hash, "; ", sha256_, " was announced"));
  }
  if (fsync(fd_.get()) != 0) return ErrnoStatus(errno, absl::StrCat("cannot sync ", temporary_));
  const std::string path = files_.PathOf(sha256_);
  // Two uploads of one file at once: the second replaces equal bytes and is not counted twice.
  const bool there = files_.Has(sha256_);
  if (std::rename(temporary_.c_str(), path.c_str()) != 0) {
    return ErrnoStatus(errno, absl::StrCat("cannot rename to ", path));
  }
  if (there) files_.used_ -= bytes_;
  committed_ = true;
  PELAB_RETURN_IF_ERROR(FsyncDirectory(DirectoryOf(path)));
  return FsyncDirectory(files_.directory_);
}

}  // namespace pelab::store
