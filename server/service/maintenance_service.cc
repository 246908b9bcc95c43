#include "server/service/maintenance_service.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <filesystem>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/base/clock.h"
#include "core/base/file.h"
#include "core/base/ids.h"
#include "core/base/log.h"
#include "core/base/regular_file.h"
#include "core/base/status.h"
#include "core/rpc/status.h"
#include "server/limits.h"
#include "server/service/blocking.h"
#include "server/service/thread_slot.h"

namespace pelab::service {
namespace {

namespace fs = std::filesystem;

constexpr std::uintmax_t kReserve = 64 << 20;  // free space that a copy must leave for the database
constexpr char kCopy[] = ".backup-";           // FILE.backup-<number>, while the copy is being made

void RemoveLeftCopies(const std::string& database) {
  const std::string prefix = fs::path(database).filename().string() + kCopy;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(DirectoryOf(database), error)) {
    if (absl::StartsWith(entry.path().filename().string(), prefix)) fs::remove(entry, error);
  }
}

// A copy must not fill the disk of the database.
absl::Status CheckRoom(const std::string& database) {
  std::error_code error;
  const auto needed = fs::file_size(database, error) + kReserve;
  const fs::space_info space = fs::space(DirectoryOf(database), error);
  if (error || space.available >= needed) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrCat("a backup needs ", needed, " bytes free on the disk of ", database,
                   " while it is made; there are ", space.available));
}

// A row without a hash could name any file of this host. A file of another size is damaged.
absl::StatusOr<UniqueFd> OpenArtifact(const store::ArtifactFiles& artifacts,
                                      const db::StoredFile& file) {
  const std::optional<std::string> path = artifacts.PathOf(file.sha256);
  if (!path) return absl::NotFoundError("the name is no SHA-256");
  PELAB_ASSIGN_OR_RETURN(UniqueFd fd, OpenRegularFile(*path));
  if (BytesOf(fd.get()) != file.bytes) return absl::DataLossError("the file has another size");
  return fd;
}

}  // namespace

MaintenanceService::MaintenanceService(std::string database, store::Journal& journal,
                                       store::ArtifactFiles& artifacts, access::Gate& gate)
    : database_(std::move(database)), journal_(journal), artifacts_(artifacts), gate_(gate) {
  RemoveLeftCopies(database_);
}

// A backup writes nothing, so its record is a write of its own, before the first byte leaves.
absl::Status MaintenanceService::Record(const grpc::ServerContext& context) {
  PELAB_ASSIGN_OR_RETURN(const access::Caller caller, gate_.CallerOf(context));
  std::optional<store::RecordAct> act = caller.Act("Maintenance/Backup", "");
  if (!act) return absl::OkStatus();
  act->outcome = "OK";
  return AppendAndWait(journal_, *std::move(act)).status();
}

absl::StatusOr<MaintenanceService::Snapshot> MaintenanceService::Take(
    grpc::ServerContext& context) const {
  PELAB_RETURN_IF_ERROR(CheckRoom(database_));
  const std::string path = absl::StrCat(database_, kCopy, RandomToken());
  const auto stopped = [&] { return stopping_ || context.IsCancelled(); };
  absl::StatusOr<std::vector<db::StoredFile>> artifacts =
      db::CopyDatabase(database_, path, stopped);
  Snapshot snapshot;
  snapshot.file.Reset(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  const int opened = errno;
  unlink(path.c_str());
  PELAB_RETURN_IF_ERROR(artifacts.status());
  struct stat info {};
  if (!snapshot.file || fstat(snapshot.file.get(), &info) != 0) {
    return ErrnoStatus(snapshot.file ? errno : opened, absl::StrCat("cannot read ", path));
  }
  snapshot.bytes = static_cast<std::uint64_t>(info.st_size);
  snapshot.artifacts = *std::move(artifacts);
  return snapshot;
}

absl::Status MaintenanceService::Send(grpc::ServerContext& context,
                                      grpc::ServerWriter<v1::BackupPart>& writer) {
  // Taken before the snapshot, so that no file that the snapshot names is removed.
  const auto hold = artifacts_.HoldAll();
  PELAB_ASSIGN_OR_RETURN(const Snapshot snapshot, Take(context));
  v1::BackupPart part;
  const auto send = [&]() -> absl::Status {
    if (stopping_) return absl::UnavailableError("the coordinator is shutting down");
    if (!writer.Write(part)) return absl::CancelledError("the client is gone");
    return absl::OkStatus();
  };
  part.mutable_header()->set_database_bytes(snapshot.bytes);
  part.mutable_header()->set_artifacts(snapshot.artifacts.size());
  for (const db::StoredFile& file : snapshot.artifacts) {
    part.mutable_header()->set_artifact_bytes(part.header().artifact_bytes() + file.bytes);
  }
  PELAB_RETURN_IF_ERROR(send());
  PELAB_RETURN_IF_ERROR(ReadPieces(snapshot.file.get(), "the copy", [&](std::string piece) {
    part.set_database(std::move(piece));
    return send();
  }));
  for (const db::StoredFile& file : snapshot.artifacts) {
    const absl::StatusOr<UniqueFd> fd = OpenArtifact(artifacts_, file);
    part.mutable_file()->set_sha256(file.sha256);
    part.mutable_file()->set_bytes(file.bytes);
    part.mutable_file()->set_missing(!fd.ok());
    PELAB_RETURN_IF_ERROR(send());
    if (!fd.ok()) continue;
    PELAB_RETURN_IF_ERROR(ReadPieces(fd->get(), file.sha256, [&](std::string piece) {
      part.set_data(std::move(piece));
      return send();
    }));
  }
  spdlog::info("backed up: {} bytes of database, {} artifacts", snapshot.bytes,
               snapshot.artifacts.size());
  return absl::OkStatus();
}

grpc::Status MaintenanceService::Backup(grpc::ServerContext* context, const v1::BackupRequest*,
                                        grpc::ServerWriter<v1::BackupPart>* writer) {
  const ThreadSlot seat(under_way_, limits::kBackups);
  if (!seat.got()) {
    return rpc::ToGrpc(absl::ResourceExhaustedError(
        absl::StrCat(limits::kBackups, " backups are under way: try again later")));
  }
  if (const absl::Status recorded = Record(*context); !recorded.ok()) return rpc::ToGrpc(recorded);
  const absl::Status sent = Send(*context, *writer);
  if (sent.ok()) last_backup_ = absl::ToUnixMillis(SystemClock::Instance().Wall());
  return rpc::ToGrpc(sent);
}

std::optional<absl::Time> MaintenanceService::last_backup() const {
  const std::int64_t at = last_backup_;
  if (at == 0) return std::nullopt;
  return absl::FromUnixMillis(at);
}

}  // namespace pelab::service
