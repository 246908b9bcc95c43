#include "server/metrics/coordinator_metrics.h"

#include <filesystem>
#include <system_error>

#include "core/access/certificate_end.h"
#include "core/base/file.h"
#include "core/base/log.h"
#include "core/base/strings.h"
#include "core/metrics/disks.h"
#include "migrations/schema.h"
#include "server/access/principals.h"

namespace pelab::metrics {
namespace {

void AddByState(Scrape::Family family, const db::SweepFigures::ByState& counts) {
  for (const auto& [state, count] : counts) {
    family.Add(static_cast<double>(count), {{"state", state}});
  }
}

// Jobs without an owner have used the time that all share, as those of the shared token have.
std::map<std::string, double> ByPrincipal(std::map<std::string, double> seconds) {
  if (const auto nobodys = seconds.extract(""); nobodys && nobodys.mapped() > 0) {
    seconds[access::kShared] += nobodys.mapped();
  }
  return seconds;
}

void AddSlots(Scrape& scrape, const sched::SchedulerFigures& figures) {
  auto slots = scrape.Gauge("pelab_slots",
                            "Slots of connected workers. closed: the worker drains, is in "
                            "quarantine, silent or about to end.");
  for (const auto& [kind, counts] : figures.slots) {
    slots.Add(static_cast<double>(counts.busy), {{"state", "busy"}, {"kind", kind}})
        .Add(static_cast<double>(counts.free), {{"state", "free"}, {"kind", kind}})
        .Add(static_cast<double>(counts.closed), {{"state", "closed"}, {"kind", kind}});
  }
  auto wanted = scrape.Gauge("pelab_slots_wanted",
                             "Slots that waiting jobs would fill, one job a slot, by the kind of "
                             "device that they need. Jobs that a pause, a limit or a back-off "
                             "holds are not in it.");
  for (const auto& [kind, count] : figures.waiting) {
    wanted.Add(static_cast<double>(count), {{"kind", kind}});
  }
}

void AddGpus(Scrape& scrape, const sched::SchedulerFigures& figures) {
  auto busy = scrape.Gauge("pelab_gpu_busy_ratio",
                           "Part of the time in which a kernel ran on the GPU, 0 to 1, as its "
                           "worker last reported it.");
  for (const sched::SchedulerFigures::Worker& worker : figures.workers) {
    for (const sched::DeviceLoad& load : worker.loads) {
      if (!load.busy_percent) continue;
      busy.Add(*load.busy_percent / 100.0, {{"worker", worker.name}, {"gpu", load.device}});
    }
  }
  auto memory = scrape.Gauge("pelab_gpu_memory_used_bytes",
                             "Memory of the GPU that all processes use together.");
  for (const sched::SchedulerFigures::Worker& worker : figures.workers) {
    for (const sched::DeviceLoad& load : worker.loads) {
      memory.Add(static_cast<double>(load.memory_used),
                 {{"worker", worker.name}, {"gpu", load.device}});
    }
  }
  auto energy = scrape.Counter("pelab_gpu_energy_joules_total",
                               "Energy that the GPU has used since its driver was loaded, as its "
                               "worker last reported it.");
  for (const sched::SchedulerFigures::Worker& worker : figures.workers) {
    for (const sched::DeviceLoad& load : worker.loads) {
      if (!load.energy_joules) continue;
      energy.Add(*load.energy_joules, {{"worker", worker.name}, {"gpu", load.device}});
    }
  }
  auto errors = scrape.Counter("pelab_gpu_xid_errors_total",
                               "Xid errors that the GPU's driver has reported since the worker "
                               "started; 0 is a memory error that was not corrected.");
  for (const sched::SchedulerFigures::Worker& worker : figures.workers) {
    for (const sched::GpuErrors& error : worker.errors) {
      errors.Add(static_cast<double>(error.times),
                 {{"worker", worker.name}, {"gpu", error.device}, {"xid", Concat(error.xid)}});
    }
  }
}

}  // namespace

void AddQueues(Scrape& scrape, const std::vector<QueueFigures>& queues) {
  auto allocations = scrape.Gauge("pelab_allocations",
                                  "Allocations of a queue by their phase, as pelab-scale reported "
                                  "them in the last 5 minutes.");
  for (const QueueFigures& queue : queues) {
    if (!queue.allocations) continue;
    for (const auto& [state, count] : *queue.allocations) {
      allocations.Add(static_cast<double>(count), {{"queue", queue.name}, {"state", state}});
    }
  }
  auto paused = scrape.Gauge("pelab_allocation_queue_paused",
                             "1 if nothing is submitted to the queue until a person resumes it, "
                             "otherwise 0.");
  for (const QueueFigures& queue : queues) {
    paused.Add(queue.paused ? 1 : 0, {{"queue", queue.name}});
  }
}

void AddScheduler(Scrape& scrape, const sched::SchedulerFigures& figures) {
  AddSlots(scrape, figures);
  std::size_t streams = 0;
  for (const auto& worker : figures.workers) streams += worker.connected ? 1 : 0;
  scrape.Gauge("pelab_worker_streams", "Workers that are connected.")
      .Add(static_cast<double>(streams));
  auto quarantined = scrape.Gauge("pelab_worker_quarantined",
                                  "1 if the worker is in quarantine because jobs failed on it at "
                                  "once, otherwise 0.");
  for (const auto& worker : figures.workers) {
    quarantined.Add(worker.quarantined ? 1 : 0, {{"worker", worker.name}});
  }
  AddGpus(scrape, figures);
  auto seconds = scrape.Counter("pelab_gpu_seconds_total",
                                "GPU seconds that the principal was charged for ended attempts.");
  for (const auto& [principal, used] : ByPrincipal(figures.gpu_seconds)) {
    seconds.Add(used, {{"principal", principal}});
  }
}

void AddSweeps(Scrape& scrape, const db::SweepFigures& figures, bool each) {
  AddByState(scrape.Gauge("pelab_jobs",
                          "Jobs of all sweeps. One that several sweeps have counts "
                          "in each of them."),
             figures.jobs);
  AddByState(scrape.Gauge("pelab_sweeps", "Sweeps."), figures.sweeps);
  if (!each) return;
  auto live = scrape.Gauge("pelab_sweep_jobs",
                           "Jobs of one live sweep; of the newest 200 (--metrics-sweeps).");
  for (const db::SweepFigures::Live& sweep : figures.live) {
    const std::string id = Concat(sweep.sweep_id);
    for (const auto& [state, count] : sweep.jobs) {
      live.Add(static_cast<double>(count), {{"sweep", id}, {"name", sweep.name}, {"state", state}});
    }
  }
}

std::optional<db::SweepFigures> CoordinatorMetrics::ReadSweeps() {
  MutexLock lock(&mutex_);
  if (!reader_) {
    auto opened = db::SweepFiguresReader::Open(parts_.database);
    if (!opened.ok()) {
      spdlog::warn("metrics lack jobs and sweeps: {}", std::string(opened.status().message()));
      return std::nullopt;
    }
    reader_ = *std::move(opened);
  }
  auto figures = reader_->Read(parts_.sweeps ? kMostSweeps : 0);
  if (figures.ok()) return *std::move(figures);
  spdlog::warn("metrics lack jobs and sweeps: {}", std::string(figures.status().message()));
  reader_.reset();
  return std::nullopt;
}

void CoordinatorMetrics::AddStore(Scrape& scrape) const {
  scrape.Gauge("pelab_store_queue_bytes", "Approximate bytes of writes that wait for a commit.")
      .Add(static_cast<double>(parts_.writer.queued_bytes()));
  scrape
      .Gauge("pelab_store_writable",
             "1 if the last commit succeeded; 0 if it failed, so that nothing is acknowledged.")
      .Add(parts_.writer.works() ? 1 : 0);
  std::error_code error;
  const std::uintmax_t wal = std::filesystem::file_size(parts_.database + "-wal", error);
  scrape.Gauge("pelab_wal_bytes", "Size of the database's write-ahead log.")
      .Add(error ? 0 : static_cast<double>(wal));
  AddFreeBytes(scrape, {DirectoryOf(parts_.database), parts_.artifacts_directory});
}

void CoordinatorMetrics::AddFiles(Scrape& scrape) const {
  scrape.Gauge("pelab_artifact_bytes", "Bytes of weights, checkpoints and other stored files.")
      .Add(static_cast<double>(parts_.artifacts.used()));
  scrape.Gauge("pelab_artifact_quota_bytes", "What these files may take (--artifact-quota).")
      .Add(static_cast<double>(parts_.artifact_quota));
  auto backup = scrape.Gauge("pelab_backup_last_success_timestamp_seconds",
                             "When the last backup was made: by --backup-dir, or by pelab db "
                             "backup since the coordinator's start.");
  if (const auto at = parts_.last_backup()) backup.Add(UnixSeconds(*at));
  auto certificate = scrape.Gauge("pelab_tls_certificate_not_after_timestamp_seconds",
                                  "When the certificate of --tls-cert ends.");
  if (parts_.certificate_file.empty()) return;
  const auto end = access::EndOfCertificate(parts_.certificate_file);
  if (end.ok()) {
    certificate.Add(UnixSeconds(*end));
  } else {
    spdlog::warn("metrics lack the certificate's end: {}", std::string(end.status().message()));
  }
}

void CoordinatorMetrics::AddNotifications(Scrape& scrape) const {
  auto ended = scrape.Counter("pelab_notifications_total",
                              "Notifications (--notify). failed: given up after the last try; "
                              "dropped: too many waited.");
  const std::optional<NotificationFigures> figures = parts_.notifications();
  if (!figures) return;
  ended.Add(static_cast<double>(figures->delivered), {{"outcome", "delivered"}})
      .Add(static_cast<double>(figures->failed), {{"outcome", "failed"}})
      .Add(static_cast<double>(figures->dropped), {{"outcome", "dropped"}});
}

std::string CoordinatorMetrics::Text() {
  Scrape scrape;
  AddBuildInfo(scrape, Concat(migrations::NewestSchema()));
  if (const auto sweeps = ReadSweeps()) AddSweeps(scrape, *sweeps, parts_.sweeps);
  if (const auto figures = parts_.scheduler()) AddScheduler(scrape, *figures);
  parts_.events.AddTo(scrape);
  AddStore(scrape);
  AddFiles(scrape);
  AddNotifications(scrape);
  if (const auto dropped = parts_.spans_dropped()) {
    scrape.Counter("pelab_spans_dropped_total", "Spans (--trace-file) that were not written.")
        .Add(static_cast<double>(*dropped));
  }
  AddQueues(scrape, parts_.queues());
  parts_.calls.AddTo(scrape);
  return scrape.Text();
}

}  // namespace pelab::metrics
