#include "server/access/rates.h"

#include <algorithm>

namespace pelab::access {

bool Rates::Take(const std::string& principal) {
  const absl::Duration now = clock_.Monotonic();
  MutexLock lock(&mutex_);
  const auto [found, added] = buckets_.try_emplace(principal, Bucket{at_once_, now});
  Bucket& bucket = found->second;
  bucket.left =
      std::min(at_once_, bucket.left + per_second_ * absl::ToDoubleSeconds(now - bucket.filled));
  bucket.filled = now;
  if (bucket.left < 1) return false;
  bucket.left -= 1;
  return true;
}

}  // namespace pelab::access
