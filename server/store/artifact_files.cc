#include "server/store/artifact_files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <functional>
#include <optional>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "core/base/file.h"
#include "core/base/ids.h"
#include "core/base/log.h"
#include "core/base/regular_file.h"
#include "core/base/status.h"
#include "core/base/utf8.h"
#include "server/store/artifact_store.h"

namespace pelab::store {
namespace {

namespace fs = std::filesystem;
constexpr char kTemporary[] = ".upload-";
// Prefix of a worker's own partial file on a shared disk. The worker may still be writing it.
constexpr char kWorkersTemporary[] = ".put-";
// Prefix, before the hash, of what an upload that broke off has left.
constexpr char kKept[] = ".kept-";
constexpr absl::Duration kAbandoned = absl::Hours(1);

// The number of a hash's folder, from 0 to kFolders - 1.
int FolderOf(const std::string& sha256) {
  const auto digit = [](char c) { return c <= '9' ? c - '0' : c - 'a' + 10; };
  return 16 * digit(sha256[0]) + digit(sha256[1]);
}

struct FileFacts {
  std::string name;
  std::uint64_t bytes = 0;
  absl::Time changed;
};

// Calls `use` for each regular file of a folder. A missing folder has no files.
absl::Status ForEachFile(const std::string& folder,
                         const std::function<void(const FileFacts&)>& use) {
  std::error_code error;
  fs::directory_iterator it(folder, error);
  if (error == std::errc::no_such_file_or_directory) return absl::OkStatus();
  for (const fs::directory_iterator end; !error && it != end; it.increment(error)) {
    struct stat info {};
    // A file that has disappeared meanwhile is not an error.
    if (stat(it->path().c_str(), &info) != 0 || !S_ISREG(info.st_mode)) continue;
    use({it->path().filename().string(), static_cast<std::uint64_t>(info.st_size),
         absl::TimeFromTimespec(info.st_mtim)});
  }
  if (!error) return absl::OkStatus();
  return absl::InternalError(absl::StrCat("cannot read ", folder, ": ", error.message()));
}

std::optional<std::uint64_t> SizeOf(const std::string& path) {
  std::error_code error;
  const std::uintmax_t size = fs::file_size(path, error);
  if (error) return std::nullopt;
  return size;
}

}  // namespace

absl::Status CheckSha256(absl::string_view text) {
  if (IsSha256({text.data(), text.size()})) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("sha256 must be 64 lower-case hexadecimal digits, not \"",
                   Shorten({text.data(), text.size()}, 80), "\""));
}

absl::StatusOr<std::unique_ptr<ArtifactFiles>> ArtifactFiles::Open(
    const std::string& database, std::uint64_t quota_bytes, std::optional<SharedStore> store) {
  const std::string directory = absl::StrCat(database, ".artifacts");
  if (store) PELAB_RETURN_IF_ERROR(LinkToStore(directory, database, *store));
  std::unique_ptr<ArtifactFiles> files(new ArtifactFiles(directory, quota_bytes, std::move(store)));
  PELAB_RETURN_IF_ERROR(files->Scan());
  return files;
}

absl::Status ArtifactFiles::Scan() {
  MutexLock lock(&mutex_);
  for (int folder = 0; folder < kFolders; ++folder) {
    const std::string path = absl::StrFormat("%s/%02x", directory_, folder);
    PELAB_RETURN_IF_ERROR(ForEachFile(path, [&](const FileFacts& file) {
      if (absl::StartsWith(file.name, kTemporary)) {
        unlink(absl::StrCat(path, "/", file.name).c_str());
      } else {
        counted_[folder] += file.bytes;
      }
    }));
  }
  return absl::OkStatus();
}

std::optional<std::string> ArtifactFiles::PathOf(const std::string& sha256) const {
  const std::optional<std::string> place = PlaceOfHash(sha256);
  if (!place) return std::nullopt;
  return absl::StrCat(directory_, "/", *place);
}

bool ArtifactFiles::Has(const std::string& sha256) const {
  const std::optional<std::string> path = PathOf(sha256);
  std::error_code error;
  return path && fs::is_regular_file(*path, error);
}

std::optional<std::uint64_t> ArtifactFiles::StoredBytes(const std::string& sha256) const {
  const std::optional<std::string> path = PathOf(sha256);
  return path && Has(sha256) ? SizeOf(*path) : std::nullopt;
}

std::uint64_t ArtifactFiles::UsedLocked() const {
  std::uint64_t used = uploading_;
  for (const std::uint64_t bytes : counted_) used += bytes;
  return used;
}

std::uint64_t ArtifactFiles::used() const {
  MutexLock lock(&mutex_);
  return UsedLocked();
}

std::uint64_t ArtifactFiles::Lacking(std::uint64_t bytes) const {
  MutexLock lock(&mutex_);
  const std::uint64_t wanted = UsedLocked() + bytes;
  return bytes > quota_ || wanted <= quota_ ? 0 : wanted - quota_;
}

absl::Status ArtifactFiles::NoRoom(std::uint64_t bytes) const {
  return absl::ResourceExhaustedError(
      absl::StrCat("artifacts use ", UsedLocked(), " of their quota of ", quota_,
                   " bytes; there is no room for ", bytes, " more (--artifact-quota)"));
}

// Holding -------------------------------------------------------------------------------------

ArtifactFiles::Hold ArtifactFiles::HoldAll() {
  holds_.fetch_add(1);
  return {static_cast<void*>(this), [this](void*) { holds_.fetch_sub(1); }};
}

ArtifactFiles::FileHold::FileHold(ArtifactFiles& files, std::string sha256)
    : files_(files), sha256_(std::move(sha256)) {
  MutexLock lock(&files_.mutex_);
  files_.held_[sha256_] += 1;
  files_.considered_.erase(sha256_);
}

ArtifactFiles::FileHold::~FileHold() {
  MutexLock lock(&files_.mutex_);
  if (--files_.held_[sha256_] == 0) files_.held_.erase(sha256_);
}

// Uploads -------------------------------------------------------------------------------------

absl::StatusOr<std::unique_ptr<ArtifactFiles::Upload>> ArtifactFiles::Begin(
    const std::string& sha256, std::uint64_t bytes, Room room, std::uint64_t offset) {
  PELAB_RETURN_IF_ERROR(CheckSha256(sha256));
  const std::string path = *PathOf(sha256);
  {
    MutexLock lock(&mutex_);
    const bool fits = bytes <= quota_ && UsedLocked() <= quota_ - bytes;
    if (bytes > quota_ || (!fits && room == Room::kFree)) return NoRoom(bytes);
  }
  std::unique_ptr<Upload> upload(new Upload(*this, sha256, path, bytes));
  const std::string parent = DirectoryOf(path);
  PELAB_RETURN_IF_ERROR(store_ ? CreateFolder(parent, *store_) : CreateDirectories(parent));
  upload->temporary_ = absl::StrCat(parent, "/", kTemporary, RandomUuid());
  if (offset > 0) {
    PELAB_RETURN_IF_ERROR(upload->GoOn(offset));
  } else {
    PELAB_ASSIGN_OR_RETURN(upload->fd_, OpenForAppend(upload->temporary_));
    if (store_ && fchmod(upload->fd_.get(), store_->file_mode()) != 0) {
      return ErrnoStatus(errno, absl::StrCat("cannot set the mode of ", upload->temporary_));
    }
  }
  return upload;
}

std::string ArtifactFiles::KeptPath(const std::string& sha256) const {
  return absl::StrCat(DirectoryOf(*PathOf(sha256)), "/", kKept, sha256);
}

std::uint64_t ArtifactFiles::KeptBytes(const std::string& sha256) const {
  return IsSha256(sha256) ? SizeOf(KeptPath(sha256)).value_or(0) : 0;
}

absl::Status ArtifactFiles::Upload::GoOn(std::uint64_t offset) {
  const std::string kept = files_.KeptPath(sha256_);
  const auto too_few = [&](std::uint64_t there) {
    return absl::FailedPreconditionError(
        absl::StrCat(there, " bytes of this file are kept, and the upload begins after ", offset));
  };
  std::uint64_t there = 0;
  {
    // Only one upload gets the bytes: the one that renames them.
    MutexLock lock(&files_.mutex_);
    there = SizeOf(kept).value_or(0);
    if (there < offset || offset > bytes_) return too_few(there);
    if (std::rename(kept.c_str(), temporary_.c_str()) != 0) return too_few(0);
    std::uint64_t& counted = files_.counted_[FolderOf(sha256_)];
    counted -= std::min(there, counted);
  }
  PELAB_ASSIGN_OR_RETURN(fd_, OpenForAppend(temporary_));
  if (ftruncate(fd_.get(), static_cast<off_t>(offset)) != 0) {
    return ErrnoStatus(errno, absl::StrCat("cannot cut ", temporary_));
  }
  PELAB_RETURN_IF_ERROR(Reserve(offset));
  written_ = offset;
  PELAB_ASSIGN_OR_RETURN(const UniqueFd reading, OpenRegularFile(temporary_));
  return ReadPieces(reading.get(), temporary_, [&](const std::string& piece) {
    hash_.Update(piece);
    return absl::OkStatus();
  });
}

void ArtifactFiles::Upload::Keep() {
  if (!fd_ || written_ == 0 || !broken_.ok()) return;
  MutexLock lock(&files_.mutex_);
  const std::string kept = files_.KeptPath(sha256_);
  const std::uint64_t before = SizeOf(kept).value_or(0);
  if (before >= written_ || std::rename(temporary_.c_str(), kept.c_str()) != 0) return;
  std::uint64_t& counted = files_.counted_[FolderOf(sha256_)];
  counted += written_ - std::min(before, counted);
  files_.uploading_ -= std::exchange(reserved_, 0);
}

ArtifactFiles::Upload::Upload(ArtifactFiles& files, std::string sha256, std::string path,
                              std::uint64_t bytes)
    : files_(files), sha256_(std::move(sha256)), path_(std::move(path)), bytes_(bytes) {}

ArtifactFiles::Upload::~Upload() {
  // Fails harmlessly after a commit, which has renamed the file.
  if (fd_) unlink(temporary_.c_str());
  MutexLock lock(&files_.mutex_);
  files_.uploading_ -= reserved_;
}

absl::Status ArtifactFiles::Upload::Reserve(std::uint64_t bytes) {
  MutexLock lock(&files_.mutex_);
  if (files_.UsedLocked() + bytes > files_.quota_) return files_.NoRoom(bytes);
  files_.uploading_ += bytes;
  reserved_ += bytes;
  return absl::OkStatus();
}

absl::Status ArtifactFiles::Upload::Write(absl::string_view bytes) {
  PELAB_RETURN_IF_ERROR(broken_);
  if (bytes.size() > bytes_ - written_) {
    return absl::InvalidArgumentError(
        absl::StrCat("the upload is longer than its announced ", bytes_, " bytes"));
  }
  PELAB_RETURN_IF_ERROR(Reserve(bytes.size()));
  written_ += bytes.size();
  hash_.Update({bytes.data(), bytes.size()});
  broken_ = WriteAll(fd_.get(), bytes, temporary_);
  return broken_;
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
  {
    MutexLock lock(&files_.mutex_);
    // If two uploads of the same file overlap, the second one replaces equal bytes and is not
    // counted twice.
    const std::uint64_t before = SizeOf(path_).value_or(0);
    if (std::rename(temporary_.c_str(), path_.c_str()) != 0) {
      return ErrnoStatus(errno, absl::StrCat("cannot rename to ", path_));
    }
    std::uint64_t& counted = files_.counted_[FolderOf(sha256_)];
    counted += bytes_ - std::min(before, counted);
    files_.uploading_ -= std::exchange(reserved_, 0);
  }
  PELAB_RETURN_IF_ERROR(FsyncDirectory(DirectoryOf(path_)));
  return FsyncDirectory(files_.directory_);
}

absl::Status ArtifactFiles::Announce(const std::string& sha256, std::uint64_t bytes) {
  PELAB_RETURN_IF_ERROR(CheckSha256(sha256));
  const std::string path = *PathOf(sha256);
  if (SizeOf(path) != bytes) {
    return absl::NotFoundError(absl::StrCat("the coordinator sees no ", path, " of ", bytes,
                                            " bytes: its --artifact-store must be the worker's"));
  }
  Old(FolderOf(sha256), absl::InfinitePast());  // recounts the folder, including this file
  MutexLock lock(&mutex_);
  return UsedLocked() > quota_ ? NoRoom(bytes) : absl::OkStatus();
}

// Collecting ----------------------------------------------------------------------------------

std::vector<std::string> ArtifactFiles::Old(int folder, absl::Time cutoff) {
  const std::string path = absl::StrFormat("%s/%02x", directory_, folder);
  std::vector<std::string> old;
  std::uint64_t bytes = 0;
  const absl::Status read = ForEachFile(path, [&](const FileFacts& file) {
    const bool kept = absl::StartsWith(file.name, kKept);
    if (kept || absl::StartsWith(file.name, kWorkersTemporary)) {
      if (absl::Now() - file.changed > kAbandoned) {
        unlink(absl::StrCat(path, "/", file.name).c_str());
      } else if (kept) {
        bytes += file.bytes;
      }
      return;
    }
    if (!IsSha256(file.name)) return;  // an upload under way, or a foreign file
    bytes += file.bytes;
    if (file.changed < cutoff) old.push_back(file.name);
  });
  if (!read.ok()) return {};
  MutexLock lock(&mutex_);
  counted_[folder] = bytes;
  return old;
}

bool ArtifactFiles::Consider(const std::string& sha256) {
  if (!IsSha256(sha256)) {
    spdlog::warn("the database names a file \"{}\", which is no SHA-256; it is left alone",
                 absl::CHexEscape(sha256.substr(0, 80)));
    return false;
  }
  MutexLock lock(&mutex_);
  if (held_.count(sha256) != 0) return false;
  considered_.insert(sha256);
  return true;
}

bool ArtifactFiles::RemoveConsidered(const std::string& sha256) {
  MutexLock lock(&mutex_);
  if (considered_.erase(sha256) == 0 || held()) return false;
  const std::string path = *PathOf(sha256);  // only hashes are considered
  const std::uint64_t bytes = SizeOf(path).value_or(0);
  if (unlink(path.c_str()) != 0) return false;
  std::uint64_t& counted = counted_[FolderOf(sha256)];
  counted -= std::min(bytes, counted);
  return true;
}

}  // namespace pelab::store
