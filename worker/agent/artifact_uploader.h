// How files reach the coordinator.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/status.h"

namespace pelab::agent {

struct ArtifactFile {
  std::string path;
  std::string sha256;
  std::uint64_t bytes = 0;
  std::int64_t attempt_id = 0;
  std::uint64_t token = 0;
};

// Thread-safe.
class ArtifactUploader {
 public:
  virtual ~ArtifactUploader() = default;
  // OK once the coordinator has the file on disk. `give_up` is asked between chunks; CANCELLED
  // where it says so. Bounded in time.
  virtual absl::Status Put(const ArtifactFile& file, const std::function<bool()>& give_up) = 0;
};

// Whether trying again may help: the coordinator was away or busy. It may not where it refused (its
// quota is full, the file is not what it was said to be, the attempt is no longer its job's).
bool IsWorthRetrying(const absl::Status& status);

}  // namespace pelab::agent
