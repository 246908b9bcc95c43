// How files go between this host and the coordinator.
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
  bool checkpoint = false;                    // gives way where space is short
  absl::Time until = absl::InfiniteFuture();  // a call ends by then, besides its own bound
};

// Thread-safe. Both calls are bounded in time, ask `give_up` between chunks, and answer CANCELLED
// where it says so.
class ArtifactTransfer {
 public:
  virtual ~ArtifactTransfer() = default;
  // OK once the coordinator has the file on disk.
  virtual absl::Status Put(const ArtifactFile& file, const std::function<bool()>& give_up) = 0;
  // OK once the file is at `file.path`, whole and of that hash; anything else leaves no file there.
  // NOT_FOUND where the coordinator has none of that hash, DATA_LOSS where what it sends is not
  // what was asked for.
  virtual absl::Status Get(const ArtifactFile& file, const std::function<bool()>& give_up) = 0;
};

// Whether trying again may help: the coordinator was away or busy. It may not where it refused (its
// quota is full, the file is not what it was said to be, the attempt is no longer its job's).
bool IsWorthRetrying(const absl::Status& status);

}  // namespace pelab::agent
