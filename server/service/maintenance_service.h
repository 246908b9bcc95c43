// pelab.v1.Maintenance: backups of the database and its artifacts while they are in use.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "core/base/unique_fd.h"
#include "core/db/backup/backup.h"
#include "pelab/v1/maintenance.grpc.pb.h"
#include "server/access/gate.h"
#include "server/store/artifact_files.h"
#include "server/store/journal.h"

namespace pelab::service {

class MaintenanceService final : public v1::Maintenance::Service {
 public:
  // Removes incomplete copies that a killed coordinator has left.
  MaintenanceService(std::string database, store::Journal& journal, store::ArtifactFiles& artifacts,
                     access::Gate& gate);

  grpc::Status Backup(grpc::ServerContext* context, const v1::BackupRequest* request,
                      grpc::ServerWriter<v1::BackupPart>* writer) override;

  // When the last backup since the start was sent whole; nullopt: none was. Thread-safe.
  std::optional<absl::Time> last_backup() const;

  // Ends running backups.
  void Stop() { stopping_ = true; }

 private:
  struct Snapshot {
    UniqueFd file;  // already unlinked: the file disappears with its descriptor
    std::uint64_t bytes = 0;
    std::vector<db::StoredFile> artifacts;
  };
  absl::Status Record(const grpc::ServerContext& context);
  absl::StatusOr<Snapshot> Take(grpc::ServerContext& context) const;
  absl::Status Send(grpc::ServerContext& context, grpc::ServerWriter<v1::BackupPart>& writer);

  const std::string database_;
  store::Journal& journal_;
  store::ArtifactFiles& artifacts_;
  access::Gate& gate_;
  std::atomic<bool> stopping_{false};
  std::atomic<int> under_way_{0};
  std::atomic<std::int64_t> last_backup_{0};  // Unix milliseconds; 0: none
};

}  // namespace pelab::service
