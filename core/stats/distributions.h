// The distributions needed for intervals. Pure functions: thread-safe.
#pragma once

namespace pelab::stats {

// The regularized incomplete beta function I_x(a, b) for a, b > 0 and x in [0, 1], by its continued
// fraction (modified Lentz; DLMF 8.17.22). `y` must be 1 - x; it is passed separately so that x
// near 1 loses no digits. Relative error about 1e-14 for small a and b, 1e-9 at 1e6; NaN outside
// the domain.
double RegularisedIncompleteBeta(double a, double b, double x, double y);

// Student's t distribution with `degrees` > 0 degrees of freedom: P(T <= t).
double StudentTCdf(double t, double degrees);

// The t with P(T <= t) = p, for 0 < p < 1; NaN outside the domain.
double StudentTQuantile(double p, double degrees);

}  // namespace pelab::stats
