// The folder of --backup-dir: the names of the backups in it, what a killed coordinator has left
// there, and their removal. Only files with such a name are ever touched.
//
// A backup of pelab.db that began at 08:15:00 UTC is pelab-20261126T081500Z.db, with its artifacts
// in pelab-20261126T081500Z.db.artifacts/.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "core/base/unique_fd.h"

namespace pelab::backups {

// Not thread-safe.
class BackupFolder {
 public:
  // Locks the folder for the backups of `database`, whose name without ".db" begins their names.
  // FAILED_PRECONDITION if `directory` is no existing directory that this process can write, or if
  // another coordinator keeps backups under the same names there.
  static absl::StatusOr<std::unique_ptr<BackupFolder>> Open(const std::string& directory,
                                                            const std::string& database);

  // The path of the backup that began at this time, in whole seconds.
  std::string PathOf(absl::Time time) const;
  // The times of the backups that are complete, in ascending order.
  absl::StatusOr<std::vector<absl::Time>> List() const;
  // Removes what backups that never ended, and removals that never ended, have left.
  absl::Status RemoveLeftovers() const;
  // Removes a backup and all that belongs to it. A backup that a coordinator serves is left alone,
  // with FAILED_PRECONDITION.
  absl::Status Remove(absl::Time time) const;

  const std::string& directory() const { return directory_; }

 private:
  BackupFolder(std::string directory, std::string prefix, UniqueFd lock);
  absl::StatusOr<std::vector<std::string>> Names() const;

  const std::string directory_;
  const std::string prefix_;  // "pelab-"
  const UniqueFd lock_;
};

// The name of a file of a backup, after the database's name. A value.
struct BackupName {
  absl::Time time;
  std::string rest;  // "": the database itself; ".artifacts", ".partial", "-wal", …
};
// nullopt if the name is not one that BackupFolder or SQLite makes. `prefix` is as "pelab-". Pure.
std::optional<BackupName> ParseBackupName(std::string_view name, std::string_view prefix);

}  // namespace pelab::backups
