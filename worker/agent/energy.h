// Measures the energy that attempts use on GPUs.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>

#include "absl/base/thread_annotations.h"
#include "core/base/mutex.h"

namespace pelab::agent {

// Divides the energy of each GPU among the attempts that have it. The meter reads a GPU's counter
// whenever an attempt begins or ends, so the attempts on the GPU do not change between two
// readings. Each of them gets an equal part of the difference, since nothing says which one used
// more. The energy of an idle GPU is included. Thread-safe.
class EnergyMeter {
 public:
  // The joules that the GPU with this UUID has used since some moment in the past; nullopt if they
  // cannot be read. Called by one thread at a time.
  using Counter = std::function<std::optional<double>(const std::string& uuid)>;

  explicit EnergyMeter(Counter counter);

  // The attempt has the GPU from now on. Has no effect if the attempt has it already.
  void Begin(std::int64_t attempt_id, const std::string& uuid);
  // The attempt no longer has its GPU. Returns the joules of the attempt. nullopt: the attempt has
  // no GPU, or a reading failed or was below the one before it (the driver was loaded again).
  std::optional<double> End(std::int64_t attempt_id);

 private:
  struct Gpu {
    std::optional<double> last;  // the last reading
    // The attempts that have it, with their joules up to the last reading.
    std::map<std::int64_t, std::optional<double>> attempts;
  };

  void Read(const std::string& uuid, Gpu& gpu) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  Mutex mutex_;
  const Counter counter_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, Gpu> gpus_ ABSL_GUARDED_BY(mutex_);  // by UUID
};

}  // namespace pelab::agent
