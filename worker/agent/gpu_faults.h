// Watches the GPUs of this worker's slots for faults of the hardware, which NVIDIA's driver numbers
// as Xid errors. Jobs that are sent to a broken GPU fail or, worse, compute wrong numbers.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "core/base/mutex.h"
#include "pelab/v1/fleet.pb.h"
#include "worker/agent/devices.h"
#include "worker/agent/nvml.h"

namespace pelab::agent {

// Whether a GPU with this Xid error needs a reset or a repair before it can be trusted again.
// Errors that programs cause, such as 13 and 31, do not count. Source: NVIDIA, "Analyzing Xid
// Errors with the Xid Catalog".
bool IsFatalXid(std::uint64_t xid);

// Thread-safe; it has a thread of its own.
class GpuFaults {
 public:
  // `nvml` belongs to this object alone and may be null: then nothing is watched.
  GpuFaults(std::unique_ptr<Nvml> nvml, const std::vector<SlotPlan>& plans);
  ~GpuFaults();

  // The fault in words: "GPU cuda:1 has Xid 79". Empty: no GPU has one. The first fault counts.
  std::string Broken() const;

  struct Count {
    std::string device;     // "cuda:0"
    std::uint64_t xid = 0;  // 0: a memory error that cannot be corrected, without a number
    std::uint64_t times = 0;
  };
  // All events since the start, also those that are not fatal.
  std::vector<Count> Counts() const;

 private:
  void Watch(NvmlEvents& events);
  void Take(const GpuEvent& event);

  const std::unique_ptr<Nvml> nvml_;
  const std::vector<std::pair<std::string, std::string>> devices_;  // "cuda:0" and its UUID
  mutable Mutex mutex_;
  std::string broken_ ABSL_GUARDED_BY(mutex_);
  std::map<std::pair<std::string, std::uint64_t>, std::uint64_t> counts_ ABSL_GUARDED_BY(mutex_);
  std::atomic<bool> ending_ = false;
  std::thread thread_;
};

// Adds what has been counted to a heartbeat.
void AddErrors(const GpuFaults& faults, v1::Heartbeat& heartbeat);

}  // namespace pelab::agent
