#include "core/stats/distributions.h"

#include <boost/math/distributions/binomial.hpp>
#include <boost/math/distributions/students_t.hpp>
#include <limits>

#include "core/stats/boost_policy.h"

namespace pelab::stats {
namespace {

using StudentsT = boost::math::students_t_distribution<double, Quiet>;
using Binomial = boost::math::binomial_distribution<double, Quiet>;

}  // namespace

double StudentTCdf(double t, double degrees) { return cdf(StudentsT(degrees), t); }

double StudentTQuantile(double p, double degrees) {
  // Boost gives an infinity for 0 and 1.
  if (!(p > 0) || !(p < 1)) return std::numeric_limits<double>::quiet_NaN();
  return quantile(StudentsT(degrees), p);
}

double BinomialCdf(std::int64_t successes, std::int64_t trials, double share) {
  return cdf(Binomial(static_cast<double>(trials), share), static_cast<double>(successes));
}

}  // namespace pelab::stats
