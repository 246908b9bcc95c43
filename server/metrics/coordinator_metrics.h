// The coordinator's answer to GET /metrics: what it counted, and what it knows at that moment.
// docs/operations.md lists the metrics.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/time/time.h"
#include "core/base/mutex.h"
#include "core/db/read/sweep_figures.h"
#include "core/metrics/scrape.h"
#include "server/metrics/calls.h"
#include "server/metrics/events.h"
#include "server/metrics/queue_figures.h"
#include "server/sched/scheduler.h"
#include "server/store/artifact_files.h"
#include "server/store/writer.h"

namespace pelab::metrics {

// With --metrics-sweeps, at most this many live sweeps have samples of their own.
inline constexpr std::size_t kMostSweeps = 200;

// Notifications that have come to an end: delivered, given up after the last try, and dropped
// because too many waited.
struct NotificationFigures {
  std::uint64_t delivered = 0;
  std::uint64_t failed = 0;
  std::uint64_t dropped = 0;
};

// The sources of the metrics. The referenced objects must outlive a CoordinatorMetrics, and the
// functions must be thread-safe.
struct CoordinatorParts {
  const Events& events;
  const Calls& calls;
  const store::Writer& writer;
  const store::ArtifactFiles& artifacts;
  // nullopt if the scheduler does not answer in time; its metrics are then left out.
  std::function<std::optional<sched::SchedulerFigures>()> scheduler;
  // When the last backup was made; nullopt: none is known.
  std::function<std::optional<absl::Time>()> last_backup;
  // nullopt: there are none (--notify).
  std::function<std::optional<NotificationFigures>()> notifications;
  // How many spans were dropped; nullopt: none are recorded (--trace-file).
  std::function<std::optional<std::uint64_t>()> spans_dropped;
  std::function<std::vector<QueueFigures>()> queues;
  std::string database;
  std::string artifacts_directory;
  std::uint64_t artifact_quota = 0;  // bytes
  std::string certificate_file;      // PEM; empty: TLS is off
  bool sweeps = false;               // --metrics-sweeps
};

// The samples of the scheduler's figures. Pure.
void AddScheduler(Scrape& scrape, const sched::SchedulerFigures& figures);
// The samples of queues and their allocations. Pure.
void AddQueues(Scrape& scrape, const std::vector<QueueFigures>& queues);
// The samples of jobs and sweeps; those of single sweeps if `each`. Pure.
void AddSweeps(Scrape& scrape, const db::SweepFigures& figures, bool each);

// Thread-safe.
class CoordinatorMetrics {
 public:
  explicit CoordinatorMetrics(CoordinatorParts parts) : parts_(std::move(parts)) {}

  // The text of a scrape. Metrics whose source fails are left out, and the log says why: the other
  // metrics help to find the cause. Reads the database on a connection of its own and never waits
  // for a write.
  std::string Text();

 private:
  std::optional<db::SweepFigures> ReadSweeps();
  void AddStore(Scrape& scrape) const;
  void AddFiles(Scrape& scrape) const;
  void AddNotifications(Scrape& scrape) const;

  const CoordinatorParts parts_;
  Mutex mutex_;
  std::unique_ptr<db::SweepFiguresReader> reader_ ABSL_GUARDED_BY(mutex_);  // null: not open yet
};

}  // namespace pelab::metrics
