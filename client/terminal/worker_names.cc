#include "client/terminal/worker_names.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "core/base/strings.h"

namespace pelab::client {
namespace {

constexpr std::size_t kLeastIdCharacters = 6;  // the coordinator accepts prefixes of at least this
                                               // length
// In percent of a lease. A heartbeat is due after 25 %, so at 35 % one is late.
constexpr std::uint64_t kSilentPercent = 35;

}  // namespace

std::string ShortId(const v1::WorkerRow& worker, const std::vector<v1::WorkerRow>& workers) {
  const std::string& id = worker.worker_id();
  std::size_t characters = kLeastIdCharacters;
  for (const v1::WorkerRow& other : workers) {
    const std::string& its = other.worker_id();
    if (its == id) continue;
    const auto differ = std::mismatch(id.begin(), id.end(), its.begin(), its.end());
    characters = std::max<std::size_t>(characters, differ.first - id.begin() + 1);
  }
  return id.substr(0, characters);
}

std::map<std::string, std::string> WorkerLabels(const std::vector<v1::WorkerRow>& workers) {
  std::map<std::string, int> named;
  for (const v1::WorkerRow& worker : workers) named[worker.name()] += 1;
  std::map<std::string, std::string> labels;
  for (const v1::WorkerRow& worker : workers) {
    labels[worker.worker_id()] = named[worker.name()] == 1
                                     ? worker.name()
                                     : Concat(worker.name(), " (", ShortId(worker, workers), ")");
  }
  return labels;
}

std::vector<std::string> SilentWorkers(const std::vector<v1::WorkerRow>& workers) {
  const std::map<std::string, std::string> labels = WorkerLabels(workers);
  std::vector<std::string> lines;
  for (const v1::WorkerRow& worker : workers) {
    if (!worker.has_silent_ms() || !worker.has_lease_left_ms()) continue;
    const std::uint64_t lease = worker.silent_ms() + worker.lease_left_ms();
    if (worker.silent_ms() * 100 < lease * kSilentPercent) continue;
    lines.push_back(Concat("worker ", labels.at(worker.worker_id()), " not heard of for ",
                           worker.silent_ms() / 1000, " s; its jobs are given away in ",
                           worker.lease_left_ms() / 1000, " s"));
  }
  return lines;
}

std::string WorkerNames::Of(const std::string& worker_id) {
  if (worker_id.empty()) return "";
  if (labels_.count(worker_id) == 0) {
    if (const auto workers = source_.Workers(); workers.ok()) labels_ = WorkerLabels(*workers);
    labels_.emplace(worker_id, worker_id);  // at most one lookup per id, whether or not it is found
  }
  return labels_.at(worker_id);
}

}  // namespace pelab::client
