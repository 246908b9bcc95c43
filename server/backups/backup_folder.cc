#include "server/backups/backup_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <set>
#include <system_error>
#include <utility>

#include "core/base/file.h"
#include "core/base/status.h"
#include "core/base/strings.h"
#include "core/rpc/lock_file.h"

namespace pelab::backups {
namespace {

namespace fs = std::filesystem;

constexpr char kTimeFormat[] = "%Y%m%dT%H%M%SZ";
constexpr std::size_t kTimeBytes = 16;
constexpr std::string_view kDatabase = ".db";
constexpr std::string_view kPartial = ".partial";
// Files that belong to a complete backup. SQLite and `pelab-server --db` make some of them.
constexpr std::array<std::string_view, 5> kBeside = {".artifacts", "-wal", "-shm", "-journal",
                                                     ".lock"};

std::string StampOf(absl::Time time) {
  return absl::FormatTime(kTimeFormat, time, absl::UTCTimeZone());
}

// Abseil's %Y would take all of the digits.
std::optional<absl::Time> ParseStamp(std::string_view stamp) {
  const std::string apart = Concat(stamp.substr(0, 4), "-", stamp.substr(4));
  absl::Time time;
  std::string ignored;
  if (!absl::ParseTime("%Y-%m%dT%H%M%SZ", apart, &time, &ignored)) return std::nullopt;
  return StampOf(time) == stamp ? std::optional(time) : std::nullopt;
}

std::string PrefixFor(const std::string& database) {
  std::string name = fs::path(database).filename().string();
  if (name.size() > kDatabase.size() && name.ends_with(kDatabase)) {
    name.resize(name.size() - kDatabase.size());
  }
  return name + "-";
}

absl::Status CheckDirectory(const std::string& directory) {
  std::error_code error;
  const std::string allowed =
      "; --backup-dir must be an existing directory that this user can "
      "write";
  if (!fs::is_directory(directory, error)) {
    return absl::FailedPreconditionError(Concat(
        "cannot keep backups in ", directory, ": ",
        fs::exists(directory, error) ? "it is not a directory" : "there is no such directory",
        allowed));
  }
  if (::access(directory.c_str(), R_OK | W_OK | X_OK) == 0) return absl::OkStatus();
  const std::string why = std::generic_category().message(errno);
  return absl::FailedPreconditionError(
      Concat("cannot keep backups in ", directory, ": ", why, allowed));
}

// Two coordinators with databases of the same name would remove each other's backups. A file system
// without locks is not refused.
absl::StatusOr<UniqueFd> Lock(const std::string& directory, const std::string& prefix) {
  const std::string path = Concat(directory, "/.", prefix, "backups.lock");
  UniqueFd fd(open(path.c_str(), O_RDONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!fd) {
    return absl::FailedPreconditionError(
        std::string(ErrnoStatus(errno, Concat("cannot write ", path)).message()));
  }
  if (flock(fd.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
    return absl::FailedPreconditionError(Concat("another coordinator keeps backups named ", prefix,
                                                "… in ", directory,
                                                "; give each database a --backup-dir of its own"));
  }
  return fd;
}

}  // namespace

std::optional<BackupName> ParseBackupName(std::string_view name, std::string_view prefix) {
  if (!name.starts_with(prefix)) return std::nullopt;
  name.remove_prefix(prefix.size());
  if (name.size() < kTimeBytes) return std::nullopt;
  const std::optional<absl::Time> time = ParseStamp(name.substr(0, kTimeBytes));
  if (!time) return std::nullopt;
  BackupName parsed{.time = *time, .rest = ""};
  name.remove_prefix(kTimeBytes);
  if (!name.starts_with(kDatabase)) return std::nullopt;
  parsed.rest = name.substr(kDatabase.size());
  std::string_view rest = parsed.rest;
  if (rest.starts_with(kPartial)) rest.remove_prefix(kPartial.size());
  const bool known =
      rest.empty() || std::find(kBeside.begin(), kBeside.end(), rest) != kBeside.end();
  return known ? std::optional(parsed) : std::nullopt;
}

BackupFolder::BackupFolder(std::string directory, std::string prefix, UniqueFd lock)
    : directory_(std::move(directory)), prefix_(std::move(prefix)), lock_(std::move(lock)) {}

absl::StatusOr<std::unique_ptr<BackupFolder>> BackupFolder::Open(const std::string& directory,
                                                                 const std::string& database) {
  PELAB_RETURN_IF_ERROR(CheckDirectory(directory));
  std::string prefix = PrefixFor(database);
  PELAB_ASSIGN_OR_RETURN(UniqueFd lock, Lock(directory, prefix));
  return std::unique_ptr<BackupFolder>(
      new BackupFolder(directory, std::move(prefix), std::move(lock)));
}

std::string BackupFolder::PathOf(absl::Time time) const {
  return Concat(directory_, "/", prefix_, StampOf(time), kDatabase);
}

absl::StatusOr<std::vector<std::string>> BackupFolder::Names() const {
  std::vector<std::string> names;
  std::error_code error;
  fs::directory_iterator it(directory_, error);
  for (const fs::directory_iterator end; !error && it != end; it.increment(error)) {
    names.push_back(it->path().filename().string());
  }
  if (!error) return names;
  return ErrnoStatus(error.value(), Concat("cannot read ", directory_));
}

absl::StatusOr<std::vector<absl::Time>> BackupFolder::List() const {
  PELAB_ASSIGN_OR_RETURN(const std::vector<std::string> names, Names());
  std::vector<absl::Time> times;
  for (const std::string& name : names) {
    const auto parsed = ParseBackupName(name, prefix_);
    if (parsed && parsed->rest.empty()) times.push_back(parsed->time);
  }
  std::sort(times.begin(), times.end());
  return times;
}

absl::Status BackupFolder::RemoveLeftovers() const {
  PELAB_ASSIGN_OR_RETURN(const std::vector<std::string> names, Names());
  const std::set<std::string> present(names.begin(), names.end());
  for (const std::string& name : names) {
    const auto parsed = ParseBackupName(name, prefix_);
    if (!parsed) continue;
    const bool half = parsed->rest.starts_with(kPartial);
    const std::string database = name.substr(0, name.size() - parsed->rest.size());
    if (!half && present.contains(database)) continue;
    PELAB_RETURN_IF_ERROR(RemoveAll(Concat(directory_, "/", name)));
  }
  return absl::OkStatus();
}

// The database goes first: without it, what is left of the others is no backup.
absl::Status BackupFolder::Remove(absl::Time time) const {
  const std::string path = PathOf(time);
  if (const auto served = rpc::ReadLiveAddress(path); served.ok() && *served) {
    return absl::FailedPreconditionError(Concat(path, " is not removed: a coordinator serves it"));
  }
  PELAB_RETURN_IF_ERROR(RemoveAll(path));
  PELAB_RETURN_IF_ERROR(FsyncDirectory(directory_));
  for (const std::string_view beside : kBeside) {
    PELAB_RETURN_IF_ERROR(RemoveAll(Concat(path, beside)));
  }
  return absl::OkStatus();
}

}  // namespace pelab::backups
