#include "worker/agent/worker_metrics.h"

#include <utility>

#include "core/metrics/disks.h"
#include "core/metrics/scrape.h"

namespace pelab::agent {
namespace {

void AddGpus(metrics::Scrape& scrape, const std::string& worker,
             const std::vector<DeviceLoads::Gpu>& gpus) {
  auto busy = scrape.Gauge("pelab_gpu_busy_ratio",
                           "Part of the time in which a kernel ran on the GPU, 0 to 1.");
  for (const auto& gpu : gpus) {
    if (!gpu.load.busy_percent) continue;
    busy.Add(*gpu.load.busy_percent / 100.0, {{"worker", worker}, {"gpu", gpu.device}});
  }
  auto memory = scrape.Gauge("pelab_gpu_memory_used_bytes",
                             "Memory of the GPU that all processes use together.");
  for (const auto& gpu : gpus) {
    memory.Add(static_cast<double>(gpu.load.memory_used),
               {{"worker", worker}, {"gpu", gpu.device}});
  }
  auto energy = scrape.Counter("pelab_gpu_energy_joules_total",
                               "Energy that the GPU has used since its driver was loaded.");
  for (const auto& gpu : gpus) {
    if (!gpu.load.energy_joules) continue;
    energy.Add(*gpu.load.energy_joules, {{"worker", worker}, {"gpu", gpu.device}});
  }
}

void AddFaults(metrics::Scrape& scrape, const std::string& worker, const GpuFaults& faults) {
  auto errors = scrape.Counter("pelab_gpu_xid_errors_total",
                               "Xid errors that the GPU's driver has reported; 0 is a memory error "
                               "that was not corrected.");
  for (const GpuFaults::Count& count : faults.Counts()) {
    errors.Add(static_cast<double>(count.times),
               {{"worker", worker}, {"gpu", count.device}, {"xid", std::to_string(count.xid)}});
  }
}

}  // namespace

WorkerMetrics::WorkerMetrics(std::string name, std::string work_dir, std::unique_ptr<Nvml> nvml,
                             const std::vector<SlotPlan>& plans, const GpuFaults* faults)
    : name_(std::move(name)),
      work_dir_(std::move(work_dir)),
      faults_(faults),
      loads_(std::move(nvml), plans) {}

std::string WorkerMetrics::Text() {
  std::vector<DeviceLoads::Gpu> gpus;
  {
    MutexLock lock(&mutex_);
    gpus = loads_.Gpus();
  }
  metrics::Scrape scrape;
  metrics::AddBuildInfo(scrape, /*schema=*/"");
  AddGpus(scrape, name_, gpus);
  AddFaults(scrape, name_, *faults_);
  metrics::AddFreeBytes(scrape, {work_dir_});
  return scrape.Text();
}

}  // namespace pelab::agent
