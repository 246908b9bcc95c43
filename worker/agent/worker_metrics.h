// The metrics of a worker on GET /metrics: its GPUs and its disk. docs/operations.md lists
// the metrics.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "core/base/mutex.h"
#include "worker/agent/devices.h"
#include "worker/agent/gpu_faults.h"
#include "worker/agent/loads.h"
#include "worker/agent/nvml.h"

namespace pelab::agent {

// Thread-safe.
class WorkerMetrics {
 public:
  // `name` is the value of the label `worker`. `nvml` may be null, and belongs to this object
  // alone: heartbeats use another one, so that they never wait for a scrape. `faults` must outlive
  // this object.
  WorkerMetrics(std::string name, std::string work_dir, std::unique_ptr<Nvml> nvml,
                const std::vector<SlotPlan>& plans, const GpuFaults* faults);

  // The text of a scrape; asks the GPUs.
  std::string Text();

 private:
  const std::string name_;
  const std::string work_dir_;
  const GpuFaults* const faults_;
  Mutex mutex_;
  DeviceLoads loads_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace pelab::agent
