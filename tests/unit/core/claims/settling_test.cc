// Simulated proofs that decisions by e-values may be looked at any time. `make bench-settle` runs
// many more.
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "core/stats/seeds.h"
#include "tests/support/simulated_sheets.h"

namespace pelab::testing_support {
namespace {

TEST(SettlingTest, FewDecisionsAreFalseEvenAtTheWorstLook) {
  std::vector<double> settled, naive, decided;
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    const SimulatedSheet sheet = SimulateSheet(seed);
    settled.push_back(sheet.settled.at_worst);
    naive.push_back(sheet.naive.at_worst);
    decided.push_back(sheet.settled.decided);
  }
  EXPECT_LE(stats::Mean(settled), 0.05);
  EXPECT_GT(stats::Mean(naive), 0.1) << "the sheets are too easy to show anything";
  EXPECT_GT(stats::Mean(decided), 0.75 * (kSimulatedClaims - kTrueNulls)) << "nothing is decided";
}

TEST(SettlingTest, AClearClaimIsDecidedSoonAndAFairCoinHardlyEver) {
  EXPECT_EQ(SeedsUntilDecided(1, 40, 0), 8);
  EXPECT_EQ(SeedsUntilDecided(0, 40, 0), 8);
  std::vector<int> seeds;
  int decided = 0;
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    seeds.push_back(SeedsUntilDecided(0.9, 100, seed));
    if (SeedsUntilDecided(0.5, 100, seed) <= 100) ++decided;
  }
  EXPECT_LE(Median(seeds), 15);
  EXPECT_LE(decided, 400 * 0.05);
}

}  // namespace
}  // namespace pelab::testing_support
