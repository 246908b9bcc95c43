// How Boost.Math computes here. Internal to core/stats.
#pragma once

#include <boost/math/policies/policy.hpp>

namespace pelab::stats {

// By default, Boost throws outside the domain and computes in long double. Long double is six times
// as slow, and changes a result by a relative 1e-14 at most.
using Quiet = boost::math::policies::policy<
    boost::math::policies::domain_error<boost::math::policies::ignore_error>,
    boost::math::policies::overflow_error<boost::math::policies::ignore_error>,
    boost::math::policies::evaluation_error<boost::math::policies::ignore_error>,
    boost::math::policies::promote_double<false>>;

}  // namespace pelab::stats
