#include "worker/agent/energy.h"

#include <utility>

namespace pelab::agent {

EnergyMeter::EnergyMeter(Counter counter) : counter_(std::move(counter)) {}

void EnergyMeter::Begin(std::int64_t attempt_id, const std::string& uuid) {
  MutexLock lock(&mutex_);
  Gpu& gpu = gpus_[uuid];
  Read(uuid, gpu);
  gpu.attempts.emplace(attempt_id, gpu.last.has_value() ? std::optional(0.0) : std::nullopt);
}

std::optional<double> EnergyMeter::End(std::int64_t attempt_id) {
  MutexLock lock(&mutex_);
  for (auto& [uuid, gpu] : gpus_) {
    const auto found = gpu.attempts.find(attempt_id);
    if (found == gpu.attempts.end()) continue;
    Read(uuid, gpu);
    const std::optional<double> joules = found->second;
    gpu.attempts.erase(found);
    return joules;
  }
  return std::nullopt;
}

void EnergyMeter::Read(const std::string& uuid, Gpu& gpu) {
  const std::optional<double> now = counter_(uuid);
  const bool counts = now.has_value() && gpu.last.has_value() && *now >= *gpu.last;
  for (auto& [attempt_id, joules] : gpu.attempts) {
    if (!counts) {
      joules.reset();
    } else if (joules.has_value()) {
      *joules += (*now - *gpu.last) / static_cast<double>(gpu.attempts.size());
    }
  }
  gpu.last = now;
}

}  // namespace pelab::agent
