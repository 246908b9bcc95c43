#include "core/db/backup/backup.h"

#include <SQLiteCpp/Backup.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <utility>

#include "core/base/file.h"
#include "core/base/regular_file.h"
#include "core/base/status.h"
#include "core/base/strings.h"
#include "core/base/utf8.h"
#include "core/db/check/check.h"
#include "core/db/connection.h"
#include "migrations/sqlite_message.h"

namespace pelab::db {
namespace {

namespace fs = std::filesystem;

constexpr int kPagesAStep = 1024;

std::string ArtifactsOf(const std::string& database) { return database + ".artifacts"; }

absl::Status CannotCopy(const std::string& path, const std::string& target,
                        const SQLite::Exception& error) {
  if (error.getErrorCode() == SQLITE_FULL) {
    return absl::ResourceExhaustedError(
        Concat("cannot copy ", path, " to ", target, ": the disk there is full"));
  }
  return absl::InternalError(
      Concat("cannot copy ", path, " to ", target, ": ", migrations::MessageOf(error)));
}

absl::Status CheckStopped(const std::function<bool()>& stopped) {
  if (stopped && stopped()) return absl::CancelledError("the copy was stopped");
  return absl::OkStatus();
}

// The open transaction of `from` makes all steps see the same snapshot.
absl::Status CopyPages(SQLite::Database& from, const std::string& target,
                       const std::function<bool()>& stopped) {
  SQLite::Database to(target, SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE, kBusyMs);
  // An incomplete copy is useless, so it needs no journal and only one sync at the end.
  to.exec("PRAGMA journal_mode = OFF");
  to.exec("PRAGMA synchronous = OFF");
  SQLite::Backup backup(to, from);
  while (backup.executeStep(kPagesAStep) == SQLITE_OK) {
    PELAB_RETURN_IF_ERROR(CheckStopped(stopped));
  }
  return absl::OkStatus();
}

std::vector<StoredFile> ReadArtifacts(SQLite::Database& db) {
  std::vector<StoredFile> files;
  SQLite::Statement query(
      db,
      "SELECT sha256, bytes FROM artifacts UNION SELECT sha256, bytes FROM checkpoints "
      "UNION SELECT sha256, bytes FROM files ORDER BY sha256");
  while (query.executeStep()) {
    files.push_back({query.getColumn(0).getString(),
                     static_cast<std::uint64_t>(query.getColumn(1).getInt64())});
  }
  return files;
}

// Whether `bytes` more leave the reserve free on the disk of `target`.
absl::Status CheckRoom(const std::string& target, std::uint64_t bytes, std::uint64_t reserve) {
  if (reserve == 0) return absl::OkStatus();
  std::error_code error;
  const fs::space_info space = fs::space(DirectoryOf(target), error);
  if (error || space.available >= bytes + reserve) return absl::OkStatus();
  return absl::ResourceExhaustedError(Concat("the disk of ", DirectoryOf(target), " has ",
                                             space.available, " bytes free; the copy needs ", bytes,
                                             " more, and leaves ", reserve));
}

absl::StatusOr<bool> LinkFromEarlier(const StoredFile& file, const BackupOptions& options,
                                     BackupWriter& writer) {
  for (const std::string& earlier : options.earlier) {
    const std::optional<std::string> from = ArtifactPath(earlier, file.sha256);
    if (!from) return false;
    PELAB_ASSIGN_OR_RETURN(const bool linked, writer.LinkArtifact(file, *from));
    if (linked) return true;
  }
  return false;
}

absl::Status CopyArtifact(const std::string& path, const StoredFile& file,
                          const BackupOptions& options, BackupWriter& writer) {
  const std::optional<std::string> source = ArtifactPath(path, file.sha256);
  if (!source) return writer.ArtifactIsMissing(file.sha256);
  PELAB_RETURN_IF_ERROR(CheckStopped(options.stopped));
  PELAB_ASSIGN_OR_RETURN(const bool linked, LinkFromEarlier(file, options, writer));
  if (linked) return absl::OkStatus();
  const absl::StatusOr<UniqueFd> fd = OpenRegularFile(*source);
  if (!fd.ok() || BytesOf(fd->get()) != file.bytes) return writer.ArtifactIsMissing(file.sha256);
  PELAB_RETURN_IF_ERROR(CheckRoom(writer.database_file(), file.bytes, options.reserve));
  PELAB_RETURN_IF_ERROR(writer.BeginArtifact(file));
  return ReadPieces(fd->get(), *source, [&](const std::string& piece) -> absl::Status {
    PELAB_RETURN_IF_ERROR(CheckStopped(options.stopped));
    return writer.AppendArtifact(piece);
  });
}

// A reader of a file in WAL mode leaves files beside it.
absl::Status RemoveReadersFiles(const std::string& database) {
  PELAB_RETURN_IF_ERROR(RemoveAll(database + "-wal"));
  return RemoveAll(database + "-shm");
}

absl::Status CheckCopy(const std::string& copy, bool files_are_missing,
                       const std::function<bool()>& stopped) {
  const absl::StatusOr<std::vector<Check>> checks = CheckDatabase(copy, stopped);
  PELAB_RETURN_IF_ERROR(RemoveReadersFiles(copy));
  if (!checks.ok()) return checks.status();
  for (const Check& check : *checks) {
    if (check.problems.empty()) continue;
    // The files are missing in the original too, which the report says. All the rest is worth a
    // backup.
    if (files_are_missing && check.name == kArtifactsCheck) continue;
    return absl::DataLossError(
        Concat("the copy breaks a promise, and so may the original (pelab db "
               "check): ",
               check.name, ": ", check.problems.front()));
  }
  return absl::OkStatus();
}

// Whether the open file still has that name; another writer may have renamed or removed it.
bool IsAt(int fd, const std::string& path) {
  struct stat open_file {};
  struct stat named {};
  return fstat(fd, &open_file) == 0 && stat(path.c_str(), &named) == 0 &&
         open_file.st_ino == named.st_ino && open_file.st_dev == named.st_dev;
}

absl::Status IsThere(const std::string& path) {
  return absl::AlreadyExistsError(Concat(path, " is there already; name another file"));
}

absl::Status TooMuch(const std::string& announced, const std::string& what) {
  return absl::DataLossError(
      Concat("the source sends more than the ", announced, " that it announced of ", what));
}

absl::Status Rename(const std::string& from, const std::string& to) {
  std::error_code error;
  if (fs::exists(to, error)) return IsThere(to);
  if (std::rename(from.c_str(), to.c_str()) != 0)
    return ErrnoStatus(errno, Concat("cannot rename ", from, " to ", to));
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<StoredFile>> CopyDatabase(const std::string& path,
                                                     const std::string& target,
                                                     const std::function<bool()>& stopped) {
  auto connection = Connection::Open(path);
  if (!connection.ok()) return connection.status();
  return (*connection)->Read([&](SQLite::Database& db) -> absl::StatusOr<std::vector<StoredFile>> {
    std::vector<StoredFile> files = ReadArtifacts(db);  // the snapshot begins here
    try {
      PELAB_RETURN_IF_ERROR(CopyPages(db, target, stopped));
    } catch (const SQLite::Exception& error) {
      return CannotCopy(path, target, error);
    }
    return files;
  });
}

absl::Status CopyAnySchema(const std::string& path, const std::string& target) {
  try {
    SQLite::Database from(path, SQLite::OPEN_READONLY, kBusyMs);
    return CopyPages(from, target, {});
  } catch (const SQLite::Exception& error) {
    return CannotCopy(path, target, error);
  }
}

BackupWriter::BackupWriter(const std::string& target, UniqueFd lock)
    : target_(target), partial_(target + ".partial"), fd_(std::move(lock)) {}

absl::StatusOr<std::unique_ptr<BackupWriter>> BackupWriter::Create(const std::string& target) {
  std::error_code ignored;
  for (const std::string& taken : {target, ArtifactsOf(target)}) {
    if (fs::exists(taken, ignored)) return IsThere(taken);
  }
  const std::string partial = target + ".partial";
  UniqueFd fd(open(partial.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600));
  if (!fd) return ErrnoStatus(errno, Concat("cannot write ", partial));
  struct stat info {};
  if (fstat(fd.get(), &info) != 0 || !S_ISREG(info.st_mode)) {
    return absl::FailedPreconditionError(
        Concat("cannot write ", partial, ": it is not a regular file; remove it"));
  }
  if (flock(fd.get(), LOCK_EX | LOCK_NB) != 0 || !IsAt(fd.get(), partial)) {
    return absl::AlreadyExistsError(Concat("another backup to ", target, " is under way"));
  }
  // Removes what a killed backup left behind.
  if (ftruncate(fd.get(), 0) != 0) return ErrnoStatus(errno, Concat("cannot write ", partial));
  PELAB_RETURN_IF_ERROR(RemoveAll(ArtifactsOf(partial)));
  return std::unique_ptr<BackupWriter>(new BackupWriter(target, std::move(fd)));
}

BackupWriter::~BackupWriter() {
  if (finished_) return;
  std::error_code ignored;
  fs::remove(partial_, ignored);
  fs::remove_all(ArtifactsOf(partial_), ignored);
}

void BackupWriter::Announce(std::uint64_t database_bytes, std::uint64_t files) {
  database_bytes_ = database_bytes;
  files_ = files;
}

absl::Status BackupWriter::AppendDatabase(std::string_view piece) {
  database_written_ += piece.size();
  if (database_written_ > database_bytes_) {
    return TooMuch(Concat(database_bytes_, " bytes"), "the database");
  }
  return WriteAll(fd_.get(), absl::string_view(piece.data(), piece.size()), partial_);
}

absl::Status BackupWriter::CountFile() {
  if (++files_named_ <= files_) return absl::OkStatus();
  return TooMuch(Concat(files_, " files"), "the database's artifacts");
}

absl::Status BackupWriter::PrepareArtifact(const StoredFile& file) {
  const std::optional<std::string> path = ArtifactPath(partial_, file.sha256);
  if (!path) {
    return absl::InvalidArgumentError(Concat("the source names a file \"", Shorten(file.sha256, 80),
                                             "\", which is no SHA-256: nothing was copied"));
  }
  artifact_path_ = *path;
  return CreateDirectories(DirectoryOf(artifact_path_));
}

absl::Status BackupWriter::BeginArtifact(const StoredFile& file) {
  PELAB_RETURN_IF_ERROR(EndArtifact());
  PELAB_RETURN_IF_ERROR(CountFile());
  PELAB_RETURN_IF_ERROR(PrepareArtifact(file));
  artifact_.Reset(
      open(artifact_path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!artifact_) return ErrnoStatus(errno, Concat("cannot write ", artifact_path_));
  announced_ = file;
  artifact_written_ = 0;
  hash_ = std::make_unique<Sha256>();
  return absl::OkStatus();
}

absl::Status BackupWriter::AppendArtifact(std::string_view piece) {
  if (!artifact_) return absl::InternalError("a piece of an artifact came before its name");
  artifact_written_ += piece.size();
  if (artifact_written_ > announced_.bytes) {
    return TooMuch(Concat(announced_.bytes, " bytes"), Concat("artifact ", announced_.sha256));
  }
  hash_->Update(piece);
  return WriteAll(artifact_.get(), absl::string_view(piece.data(), piece.size()), artifact_path_);
}

absl::Status BackupWriter::ArtifactIsMissing(const std::string& sha256) {
  PELAB_RETURN_IF_ERROR(CountFile());
  report_.missing_artifacts.push_back(sha256);
  return absl::OkStatus();
}

absl::StatusOr<bool> BackupWriter::LinkArtifact(const StoredFile& file, const std::string& from) {
  PELAB_RETURN_IF_ERROR(EndArtifact());
  const absl::StatusOr<UniqueFd> fd = OpenRegularFile(from);
  if (!fd.ok() || BytesOf(fd->get()) != file.bytes) return false;
  PELAB_RETURN_IF_ERROR(PrepareArtifact(file));
  if (link(from.c_str(), artifact_path_.c_str()) != 0) return false;
  unsynced_folders_.insert(DirectoryOf(artifact_path_));
  PELAB_RETURN_IF_ERROR(CountFile());
  report_.artifacts += 1;
  report_.linked_artifacts += 1;
  report_.artifact_bytes += file.bytes;
  return true;
}

absl::Status BackupWriter::EndArtifact() {
  if (!artifact_) return absl::OkStatus();
  if (hash_->FinishHex() != announced_.sha256) {
    artifact_.Reset();
    report_.missing_artifacts.push_back(announced_.sha256);
    return RemoveAll(artifact_path_);
  }
  if (fsync(artifact_.get()) != 0)
    return ErrnoStatus(errno, Concat("cannot sync ", artifact_path_));
  artifact_.Reset();
  report_.artifacts += 1;
  report_.artifact_bytes += artifact_written_;
  return FsyncDirectory(DirectoryOf(artifact_path_));
}

// Renames the database last: once it has its final name, everything else is in place.
absl::Status BackupWriter::Publish() {
  const std::string artifacts = ArtifactsOf(partial_);
  std::error_code ignored;
  if (fs::exists(artifacts, ignored)) {
    PELAB_RETURN_IF_ERROR(FsyncDirectory(artifacts));
    PELAB_RETURN_IF_ERROR(Rename(artifacts, ArtifactsOf(target_)));
  }
  absl::Status renamed = Rename(partial_, target_);
  if (!renamed.ok()) fs::remove_all(ArtifactsOf(target_), ignored);
  return renamed;
}

absl::StatusOr<BackupReport> BackupWriter::Finish() {
  PELAB_RETURN_IF_ERROR(EndArtifact());
  for (const std::string& folder : unsynced_folders_) {
    PELAB_RETURN_IF_ERROR(FsyncDirectory(folder));
  }
  // This sync also covers writes to the file by another connection.
  if (fsync(fd_.get()) != 0) return ErrnoStatus(errno, Concat("cannot sync ", partial_));
  struct stat info {};
  if (fstat(fd_.get(), &info) != 0) return ErrnoStatus(errno, Concat("cannot read ", partial_));
  report_.database_bytes = static_cast<std::uint64_t>(info.st_size);
  PELAB_RETURN_IF_ERROR(Publish());
  finished_ = true;
  PELAB_RETURN_IF_ERROR(FsyncDirectory(DirectoryOf(target_)));
  return report_;
}

absl::StatusOr<BackupReport> Backup(const std::string& path, const std::string& target,
                                    BackupOptions options) {
  std::error_code unknown;
  const std::uintmax_t bytes = fs::file_size(path, unknown);
  PELAB_RETURN_IF_ERROR(CheckRoom(target, unknown ? 0 : bytes, options.reserve));
  PELAB_ASSIGN_OR_RETURN(const auto writer, BackupWriter::Create(target));
  PELAB_ASSIGN_OR_RETURN(const auto files,
                         CopyDatabase(path, writer->database_file(), options.stopped));
  writer->Announce(0, files.size());
  for (const StoredFile& file : files) {
    PELAB_RETURN_IF_ERROR(CopyArtifact(path, file, options, *writer));
  }
  PELAB_RETURN_IF_ERROR(writer->EndArtifact());
  options.hold.reset();
  if (options.check) {
    PELAB_RETURN_IF_ERROR(
        CheckCopy(writer->database_file(), writer->lacks_artifacts(), options.stopped));
  }
  return writer->Finish();
}

}  // namespace pelab::db
