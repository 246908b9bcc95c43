// How many calls a principal makes: a token bucket for each. Thread-safe.
#pragma once

#include <map>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/time/time.h"
#include "core/base/clock.h"
#include "core/base/mutex.h"

namespace pelab::access {

class Rates {
 public:
  // A principal may make `at_once` calls without a pause. Its bucket fills again with `per_second`
  // calls a second.
  Rates(const Clock& clock, double per_second, double at_once)
      : clock_(clock), per_second_(per_second), at_once_(at_once) {}

  // Takes one call from the principal's bucket. If the bucket is empty, takes nothing and returns
  // false.
  bool Take(const std::string& principal);

 private:
  struct Bucket {
    double left = 0;
    absl::Duration filled;
  };
  const Clock& clock_;
  const double per_second_;
  const double at_once_;
  Mutex mutex_;
  std::map<std::string, Bucket> buckets_ ABSL_GUARDED_BY(mutex_);  // only of known principals
};

}  // namespace pelab::access
