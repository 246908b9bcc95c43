#include "server/backups/scheduled_backups.h"

#include <sys/stat.h>

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "core/base/file.h"
#include "core/base/ids.h"
#include "core/base/log.h"
#include "core/base/status.h"

namespace pelab::backups {
namespace {

constexpr std::int64_t kNone = std::numeric_limits<std::int64_t>::min();

void WarnIfOnSameDisk(const std::string& directory, const std::string& database) {
  struct stat backups {};
  struct stat live {};
  if (stat(directory.c_str(), &backups) != 0) return;
  if (stat(DirectoryOf(database).c_str(), &live) != 0 || backups.st_dev != live.st_dev) return;
  spdlog::warn(
      "--backup-dir {} is on the same disk as {}: who loses that disk loses the backups too",
      directory, database);
}

// The newest of the ascending times that is not in the future.
std::optional<absl::Time> NewestBy(const std::vector<absl::Time>& times, absl::Time now) {
  const auto after = std::upper_bound(times.begin(), times.end(), now);
  if (after == times.begin()) return std::nullopt;
  return *(after - 1);
}

}  // namespace

ScheduledBackups::ScheduledBackups(const BackupSettings& settings, std::string database,
                                   const Clock& clock, std::unique_ptr<BackupFolder> folder,
                                   std::optional<absl::Time> newest)
    : settings_(settings),
      database_(std::move(database)),
      clock_(clock),
      folder_(std::move(folder)),
      last_success_(newest ? absl::ToUnixSeconds(*newest) : kNone),
      schedule_(clock, settings.every, newest, [] { return RandomUnit(); }) {}

ScheduledBackups::~ScheduledBackups() { Stop(); }

absl::StatusOr<std::unique_ptr<ScheduledBackups>> ScheduledBackups::Open(
    const BackupSettings& settings, const std::string& database, const Clock& clock) {
  PELAB_ASSIGN_OR_RETURN(auto folder, BackupFolder::Open(settings.directory, database));
  PELAB_RETURN_IF_ERROR(folder->RemoveLeftovers());
  PELAB_ASSIGN_OR_RETURN(const std::vector<absl::Time> times, folder->List());
  WarnIfOnSameDisk(settings.directory, database);
  return std::unique_ptr<ScheduledBackups>(new ScheduledBackups(
      settings, database, clock, std::move(folder), NewestBy(times, clock.Wall())));
}

void ScheduledBackups::Start(std::function<std::shared_ptr<void>()> hold) {
  hold_ = std::move(hold);
  spdlog::info("backups go to {}; the next one is due in {}", settings_.directory,
               absl::FormatDuration(absl::Trunc(schedule_.Wait(), absl::Seconds(1))));
  thread_ = std::thread([this] { Run(); });
}

void ScheduledBackups::BeginStop() {
  MutexLock lock(&mutex_);
  stopping_ = true;
}

void ScheduledBackups::Stop() {
  BeginStop();
  if (thread_.joinable()) thread_.join();
}

bool ScheduledBackups::stopping() const {
  MutexLock lock(&mutex_);
  return stopping_;
}

std::optional<absl::Time> ScheduledBackups::last_success() const {
  const std::int64_t at = last_success_;
  if (at == kNone) return std::nullopt;
  return absl::FromUnixSeconds(at);
}

void ScheduledBackups::Run() {
  while (true) {
    {
      MutexLock lock(&mutex_);
      const auto stopping = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return stopping_; };
      if (mutex_.AwaitFor(stopping, schedule_.Wait())) return;
    }
    if (schedule_.Wait() == absl::ZeroDuration()) Try();
  }
}

void ScheduledBackups::Try() {
  schedule_.Begin();
  const absl::StatusOr<db::BackupReport> report = Make();
  if (!report.ok()) {
    if (stopping()) return;
    SayFailed(report.status(), schedule_.Failed());
    return;
  }
  schedule_.Succeeded();
  said_ = absl::StatusCode::kOk;
  spdlog::info(
      "backed up to {}: {} bytes of database, {} artifacts, of which {} are links to "
      "those of earlier backups",
      settings_.directory, report->database_bytes, report->artifacts, report->linked_artifacts);
  if (report->missing_artifacts.empty()) return;
  spdlog::warn(
      "the backup lacks {} artifacts that are missing or damaged here, such as {}: pelab "
      "db check names them",
      report->missing_artifacts.size(), report->missing_artifacts.front());
}

// A reason that stays is said once.
void ScheduledBackups::SayFailed(const absl::Status& why, absl::Duration pause) {
  if (why.code() == said_) return;
  said_ = why.code();
  spdlog::error("the backup failed: {}; it is tried again in {}, and then until one succeeds",
                std::string(why.message()),
                absl::FormatDuration(absl::Ceil(pause, absl::Seconds(1))));
}

absl::StatusOr<db::BackupReport> ScheduledBackups::Make() {
  PELAB_ASSIGN_OR_RETURN(const std::vector<absl::Time> taken, folder_->List());
  absl::Time at = absl::FromUnixSeconds(absl::ToUnixSeconds(clock_.Wall()));
  while (std::binary_search(taken.begin(), taken.end(), at)) at += absl::Seconds(1);
  db::BackupOptions options{.earlier = {},
                            .reserve = kReserve,
                            .check = true,
                            .stopped = [this] { return stopping(); },
                            .hold = hold_ ? hold_() : nullptr};
  for (auto it = taken.rbegin(); it != taken.rend(); ++it) {
    options.earlier.push_back(folder_->PathOf(*it));
  }
  PELAB_ASSIGN_OR_RETURN(db::BackupReport report,
                         db::Backup(database_, folder_->PathOf(at), std::move(options)));
  last_success_ = absl::ToUnixSeconds(at);
  RemoveSurplus();
  return report;
}

void ScheduledBackups::RemoveSurplus() {
  const absl::StatusOr<std::vector<absl::Time>> times = folder_->List();
  if (!times.ok()) {
    spdlog::warn("old backups are not removed: {}", std::string(times.status().message()));
    return;
  }
  for (const absl::Time time : Surplus(*times, settings_.keep, clock_.Wall())) {
    if (const absl::Status status = folder_->Remove(time); !status.ok()) {
      spdlog::warn("{}", std::string(status.message()));
    }
  }
}

}  // namespace pelab::backups
