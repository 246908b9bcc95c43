#include "core/stats/distributions.h"

#include <cmath>
#include <limits>

namespace pelab::stats {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kTiny = 1e-300;
constexpr int kMaxTerms = 100000;

// lgamma writes a global sign; lgamma_r is its thread-safe form. For positive arguments.
double LogGamma(double x) {
  int sign = 0;
  return lgamma_r(x, &sign);
}

double AwayFromZero(double value) { return std::fabs(value) < kTiny ? kTiny : value; }

// The continued fraction of I_x(a, b) without its prefactor. Converges fast for x < (a + 1) / (a +
// b + 2).
double BetaFraction(double a, double b, double x) {
  double c = 1;
  double d = 1 / AwayFromZero(1 - (a + b) * x / (a + 1));
  double value = d;
  for (int m = 1; m < kMaxTerms; ++m) {
    const double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
    d = 1 / AwayFromZero(1 + even * d);
    c = AwayFromZero(1 + even / c);
    value *= d * c;
    const double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
    d = 1 / AwayFromZero(1 + odd * d);
    c = AwayFromZero(1 + odd / c);
    value *= d * c;
    if (std::fabs(d * c - 1) < 1e-16) break;
  }
  return value;
}

double LowerTail(double a, double b, double x, double y) {
  const double log_front =
      a * std::log(x) + b * std::log(y) + LogGamma(a + b) - LogGamma(a) - LogGamma(b);
  return std::exp(log_front) * BetaFraction(a, b, x) / a;
}

}  // namespace

double RegularisedIncompleteBeta(double a, double b, double x, double y) {
  if (!(a > 0) || !(b > 0) || !(x >= 0) || !(x <= 1)) return kNaN;
  if (x == 0) return 0;
  if (y <= 0) return 1;
  if (x < (a + 1) / (a + b + 2)) return LowerTail(a, b, x, y);
  return 1 - LowerTail(b, a, y, x);
}

double StudentTCdf(double t, double degrees) {
  if (!(degrees > 0) || std::isnan(t)) return kNaN;
  const double square = t * t;
  if (std::isinf(square)) return t < 0 ? 0 : 1;
  const double tail =
      0.5 * RegularisedIncompleteBeta(degrees / 2, 0.5, degrees / (degrees + square),
                                      square / (degrees + square));
  return t < 0 ? tail : 1 - tail;
}

double StudentTQuantile(double p, double degrees) {
  if (!(p > 0) || !(p < 1) || !(degrees > 0)) return kNaN;
  if (p == 0.5) return 0;
  // The lower tail keeps its digits however small it is; the upper tail is its mirror image.
  const double tail = p < 0.5 ? p : 1 - p;
  double low = -1;
  while (StudentTCdf(low, degrees) > tail) low *= 2;
  double high = 0;
  for (;;) {
    const double middle = low + (high - low) / 2;
    if (middle <= low || middle >= high) break;  // adjacent doubles: nothing lies between
    (StudentTCdf(middle, degrees) < tail ? low : high) = middle;
  }
  return p < 0.5 ? high : -high;
}

}  // namespace pelab::stats
