// Figures of the scheduler for metrics.
#include <string>
#include <unordered_map>

#include "absl/strings/str_cat.h"
#include "server/sched/scheduler.h"

namespace pelab::sched {
namespace {

// If two workers share a name, this many characters of their ids are added, or the whole ids if
// even these are equal.
constexpr std::size_t kCharactersOfId = 8;

using Uses = std::unordered_map<std::string, int>;

std::string ShortName(const std::string& name, const std::string& id) {
  return absl::StrCat(name, " (", id.substr(0, kCharactersOfId), ")");
}

// A name that no other worker has.
std::string UniqueName(const std::string& name, const std::string& id, const Uses& names,
                       const Uses& short_names) {
  if (name.empty()) return id;
  if (names.at(name) == 1) return name;
  std::string with_id = ShortName(name, id);
  return short_names.at(with_id) == 1 ? with_id : absl::StrCat(name, " (", id, ")");
}

}  // namespace

SchedulerFigures Scheduler::Figures() const {
  SchedulerFigures figures;
  for (const char* const kind : {"any", "cpu", "gpu"}) {
    figures.waiting[kind] =
        ready_.Waiting([kind](const store::Requirement& job) { return job.device_kind == kind; });
  }
  figures.slots = {{"cpu", {}}, {"gpu", {}}};
  Uses short_names;
  for (const auto& [id, worker] : workers_) {
    short_names[ShortName(worker.info.name, id)] += 1;
  }
  for (const auto& [id, worker] : workers_) {
    if (!worker.link && worker.attempts.empty()) continue;
    SchedulerFigures::Worker& row = figures.workers.emplace_back();
    row.name = UniqueName(worker.info.name, id, named_, short_names);
    row.connected = worker.link != nullptr;
    row.quarantined = Quarantined(worker);
    if (!worker.link) continue;
    row.loads = worker.loads;
    row.errors = worker.errors;
    const bool open = TakesJobs(worker) && !row.quarantined;
    for (const Slot& slot : worker.info.slots) {
      SchedulerFigures::Slots& slots = figures.slots[slot.device_kind];
      std::size_t& count = worker.taken.count(slot.slot) != 0 ? slots.busy
                           : open                             ? slots.free
                                                              : slots.closed;
      count += 1;
    }
  }
  figures.gpu_seconds = accounts_.GpuSeconds();
  return figures;
}

}  // namespace pelab::sched
