// The logarithm of the beta function. Internal to core/stats.
#pragma once

#include <boost/math/special_functions/gamma.hpp>

#include "core/stats/boost_policy.h"

namespace pelab::stats {

// For a, b > 0; finite where the beta function itself underflows.
inline double LogBeta(double a, double b) {
  using boost::math::lgamma;
  return lgamma(a, Quiet()) + lgamma(b, Quiet()) - lgamma(a + b, Quiet());
}

}  // namespace pelab::stats
