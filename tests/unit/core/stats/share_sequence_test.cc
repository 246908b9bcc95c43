#include "core/stats/share_sequence.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>

#include "core/base/random.h"

namespace pelab::stats {
namespace {

TEST(ShareSequenceTest, WithoutObservationsEveryShareIsPossible) {
  EXPECT_EQ(ShareSequence({0, 0}).low, 0);
  EXPECT_EQ(ShareSequence({0, 0}).high, 1);
}

TEST(ShareSequenceTest, AgreesWithScipy) {
  // scipy 1.10: the roots of betaln(k + 1, n - k + 1) - k ln p - (n - k) ln(1 - p) = ln 20, by
  // brentq
  const auto expect = [](std::int64_t k, std::int64_t n, double low, double high) {
    const ShareLimits limits = ShareSequence({k, n});
    EXPECT_NEAR(limits.low, low, 1e-10) << k << " of " << n;
    EXPECT_NEAR(limits.high, high, 1e-10) << k << " of " << n;
  };
  expect(1, 1, 0.0250000000, 1);
  expect(0, 3, 0, 0.7679205583);
  expect(5, 8, 0.1779834198, 0.9495344158);
  expect(8, 8, 0.5225055849, 1);
  expect(10, 10, 0.5831197243, 1);
  expect(18, 24, 0.4477926068, 0.9403747699);
  expect(500, 1000, 0.4443853297, 0.5556146703);
}

TEST(ShareSequenceTest, IsSymmetric) {
  for (const std::int64_t k : {0, 1, 7, 20, 41}) {
    const ShareLimits limits = ShareSequence({k, 41}), other = ShareSequence({41 - k, 41});
    EXPECT_NEAR(limits.low, 1 - other.high, 1e-12);
    EXPECT_NEAR(limits.high, 1 - other.low, 1e-12);
  }
}

TEST(ShareSequenceTest, HigherConfidenceIsWider) {
  const ShareLimits narrow = ShareSequence({3, 9}, 0.5), wide = ShareSequence({3, 9}, 0.99);
  EXPECT_LT(wide.low, narrow.low);
  EXPECT_GT(wide.high, narrow.high);
}

TEST(ShareSequenceTest, ManyObservationsStayFinite) {
  const ShareLimits limits = ShareSequence({1, 1'000'000});
  EXPECT_GT(limits.low, 0);
  EXPECT_LT(limits.high, 1e-4);
}

// The true share leaves the limits in at most 5 % of all histories, although one looks after every
// observation.
TEST(ShareSequenceTest, HoldsWheneverOneLooks) {
  constexpr int kHistories = 300, kLooks = 80;
  for (const double share : {0.5, 0.9}) {
    int excluded = 0;
    for (int history = 0; history < kHistories; ++history) {
      CounterRandom random(static_cast<std::uint64_t>(history), "share", share == 0.5 ? 0 : 1);
      SignCount count;
      for (int look = 0; look < kLooks; ++look) {
        count.successes += random.Uniform() < share ? 1 : 0;
        count.trials += 1;
        const ShareLimits limits = ShareSequence(count);
        if (limits.low <= share && share <= limits.high) continue;
        ++excluded;
        break;
      }
    }
    // 5 % and three standard errors of the simulation.
    EXPECT_LE(excluded, kHistories * (0.05 + 3 * std::sqrt(0.05 * 0.95 / kHistories))) << share;
    EXPECT_GT(excluded, 0) << share;
  }
}

}  // namespace
}  // namespace pelab::stats
