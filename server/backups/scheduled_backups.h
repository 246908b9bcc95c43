// Backups that the coordinator makes by itself: one every so often, in a thread of its own, with a
// read-only connection of its own (core/db/backup). Each is checked before it gets its name. When
// one fails, the log says why, and it is tried again after a pause; the coordinator goes on.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "core/base/clock.h"
#include "core/base/mutex.h"
#include "core/db/backup/backup.h"
#include "server/backups/backup_folder.h"
#include "server/backups/retention.h"
#include "server/backups/schedule.h"

namespace pelab::backups {

// Names of files have whole seconds.
inline constexpr absl::Duration kMostOften = absl::Seconds(1);
// Free space that a backup leaves on its disk, which may be that of the database.
inline constexpr std::uint64_t kReserve = 64 << 20;

struct BackupSettings {
  std::string directory;  // must exist
  absl::Duration every = absl::Hours(24);
  Retention keep{.newest = 0, .days = 7, .weeks = 4};
};

class ScheduledBackups {
 public:
  // Locks the folder, removes what a killed coordinator has left there, and warns if it is on the
  // disk of the database. Makes no backup before Start. `clock` must outlive the object.
  // FAILED_PRECONDITION if the folder cannot be used.
  static absl::StatusOr<std::unique_ptr<ScheduledBackups>> Open(const BackupSettings& settings,
                                                                const std::string& database,
                                                                const Clock& clock);
  ~ScheduledBackups();  // like Stop

  // Starts the thread. Call once, while the database is served. While an object that `hold` returns
  // exists, no artifact may be removed.
  void Start(std::function<std::shared_ptr<void>()> hold);
  // Ends the thread. A backup that is under way is given up. BeginStop only asks for it.
  void BeginStop();
  void Stop();

  // The time of the newest backup, also of those that were there before; nullopt: there is none.
  // Thread-safe.
  std::optional<absl::Time> last_success() const;

  // Makes a backup now, and removes those that are not kept. Start's thread calls it.
  absl::StatusOr<db::BackupReport> Make();

 private:
  ScheduledBackups(const BackupSettings& settings, std::string database, const Clock& clock,
                   std::unique_ptr<BackupFolder> folder, std::optional<absl::Time> newest);
  void Run();
  void Try();
  void RemoveSurplus();
  void SayFailed(const absl::Status& why, absl::Duration pause);
  bool stopping() const;

  const BackupSettings settings_;
  const std::string database_;
  const Clock& clock_;
  const std::unique_ptr<BackupFolder> folder_;
  std::function<std::shared_ptr<void>()> hold_;
  std::atomic<std::int64_t> last_success_;         // Unix seconds; kNone: none
  Schedule schedule_;                              // used by the thread only
  absl::StatusCode said_ = absl::StatusCode::kOk;  // of the last failure logged; by the thread only
  mutable Mutex mutex_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace pelab::backups
