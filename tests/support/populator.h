// Fills a database with sweeps and made-up results, through the coordinator's own store. The same
// documents, options and seed give the same results.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/store/store.h"
#include "server/store/writes.h"

namespace pelab {

struct PopulateOptions {
  std::vector<std::string> set;  // field=value over the documents
  std::uint64_t seed = 1;        // of the made-up numbers
  int fail_every = 0;            // every so manieth job fails; 0: none
  int open_every = 0;            // every so manieth job is queued or running; 0: none
  std::string error = "CUDA out of memory: tried to allocate 2.00 GiB";  // of jobs that fail
  std::string log;  // what every attempt's log holds
};

// For one thread. The options and the store must outlive it.
class Populator {
 public:
  Populator(const PopulateOptions& options, store::Store& store)
      : options_(options), store_(store) {}

  // Stores the sweep of `document` and the results of its jobs. `path` is its file, for messages.
  absl::Status Add(const std::string& path, const std::string& document);

 private:
  // How far a job got.
  enum class End { kSucceeded, kFailed, kRunning, kQueued };

  absl::StatusOr<store::WriteResult> Do(store::Write write);
  End EndOf(std::int64_t job) const;
  absl::Status Train(const std::vector<store::ReadyJob>& ready);
  absl::Status Apply(const std::vector<store::Write>& events);
  absl::Status TrainOne(std::int64_t job_id, std::vector<store::Write>& events);

  const PopulateOptions& options_;
  store::Store& store_;
  std::int64_t now_ = 1'790'000'000'000;  // September 2026
};

}  // namespace pelab
