// Transfers files between this host and the coordinator.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace pelab::agent {

struct ArtifactFile {
  std::string path;
  std::string sha256;
  std::uint64_t bytes = 0;
  std::int64_t attempt_id = 0;
  std::uint64_t token = 0;
  bool checkpoint = false;  // may be refused or removed first when space is short
  // the call's deadline; the call's own time limit may be earlier
  absl::Time until = absl::InfiniteFuture();
};

// Thread-safe. Both calls have a time limit. They ask `give_up` between chunks and return CANCELLED
// if it answers true.
class ArtifactTransfer {
 public:
  virtual ~ArtifactTransfer() = default;
  // Sends the file. OK once the coordinator has it on disk.
  virtual absl::Status Put(const ArtifactFile& file, const std::function<bool()>& give_up) = 0;
  // Fetches the file. OK once it is complete at `file.path` and has the expected hash; after an
  // error no file is left there. NOT_FOUND if the coordinator has no file with this hash, DATA_LOSS
  // if the received bytes do not match `file`.
  virtual absl::Status Get(const ArtifactFile& file, const std::function<bool()>& give_up) = 0;
};

// True if trying again may help, because the coordinator was away or busy. It does not help after a
// refusal: the quota is full, the file does not match its hash, or the job has a newer attempt.
bool IsWorthRetrying(const absl::Status& status);

}  // namespace pelab::agent
