// Optional work of the coordinator: scheduled backups (server/backups), notifications
// (server/notify) and a file of spans (core/trace). Without an option, its functions do nothing.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "core/trace/span_file.h"
#include "server/backups/scheduled_backups.h"
#include "server/coordinator.h"
#include "server/metrics/coordinator_metrics.h"
#include "server/notify/notifier.h"
#include "server/sched/scheduler.h"
#include "server/store/artifact_files.h"
#include "server/store/store.h"

namespace pelab {

// Thread-safe, apart from Open, StartNotifier, StartBackups and Stop.
class Background {
 public:
  // Checks what the options ask for. Makes and sends nothing yet. The errors are those of
  // ScheduledBackups::Open, Notifier::Make and SpanFile::Open. `options.clock` must outlive the
  // object.
  static absl::StatusOr<std::unique_ptr<Background>> Open(const CoordinatorOptions& options);

  // Call it before anything is written.
  absl::Status StartNotifier();
  // Call it once the database is served. `artifacts` must live until Stop.
  void StartBackups(store::ArtifactFiles& artifacts);
  // Asks the threads to end; Stop also waits for them.
  void BeginStop();
  void Stop();

  // These tell the notifications what has happened.
  void SweepsEnded(const std::vector<std::int64_t>& sweep_ids);
  void Committed(const absl::StatusOr<std::vector<store::ApplyResult>>& results);
  void Quarantined(const std::string& worker_id, const std::string& name, absl::Duration length);
  void BudgetSpent(const notify::SpentBudget& budget);
  void GpuSecondsSpent(const sched::Account& account);
  // Records the attempt's span, if it belongs to a trace. It ends at `now`.
  void AttemptEnded(const sched::EndedAttempt& ended, absl::Time now);
  // Null: no spans are recorded.
  trace::SpanFile* spans() { return spans_.get(); }

  // For metrics: the later of this time and that of the last scheduled backup. 1970 if backups are
  // scheduled and there is none.
  std::optional<absl::Time> LastBackup(std::optional<absl::Time> other) const;
  // nullopt: there are no notifications.
  std::optional<metrics::NotificationFigures> Notifications() const;
  // For metrics; nullopt: no spans are recorded.
  std::optional<std::uint64_t> SpansDropped() const;

 private:
  Background() = default;

  std::unique_ptr<backups::ScheduledBackups> backups_;  // null: none are scheduled
  std::shared_ptr<notify::Notifier> notifier_;          // null: nobody is notified
  std::unique_ptr<trace::SpanFile> spans_;
};

}  // namespace pelab
