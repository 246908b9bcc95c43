// A confidence sequence of a share. Pure functions: thread-safe.
#pragma once

#include "core/stats/e_value.h"

namespace pelab::stats {

struct ShareLimits {
  double low = 0;
  double high = 1;
};

// Limits of the unknown share of successes after k successes in n observations. They may be
// computed after every observation: the probability that they ever exclude the share is at most
// 1 - confidence. A share p is excluded if the likelihood ratio of a uniform mixture of all shares
// against it (Robbins, Annals of Mathematical Statistics 41, 1970),
//
//   B(k + 1, n - k + 1) / (p^k (1 - p)^(n - k)),
//
// is at least 1 / (1 - confidence). The limits are 0 and 1 if there are no observations.
ShareLimits ShareSequence(const SignCount& count, double confidence = 0.95);

}  // namespace pelab::stats
