// The expected numbers come from the generator in tests/golden/repeat.py, written from
// docs/reproducibility.md.
#include "worker/trainer/parameters/initial_values.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <stdexcept>

namespace pelab::trainer {
namespace {

constexpr std::int64_t kLargestSeed = (std::int64_t{1} << 53) - 1;

std::vector<double> Drawn(std::int64_t seed, const std::string& name, const Init& init,
                          std::int64_t count) {
  std::vector<double> values(static_cast<std::size_t>(count));
  DrawInitialValues(seed, name, init, count, values.data());
  return values;
}

// Stored results depend on these values to the last bit.
TEST(InitialValues, SymmetricOnesStay) {
  const double uniform[] = {0.34494041672103537, 0.6397836338459949, 0.648497183645993,
                            0.8807459164119872};
  const auto drawn = Drawn(7, "embedding.weight", Init::Uniform(0.25), 4);
  for (int i = 0; i < 4; ++i) EXPECT_EQ(drawn[i], (2 * uniform[i] - 1) * 0.25) << i;
  const double normal[] = {-1.911705401605392, -1.094765127433448, -0.18525481751155853};
  const auto biases = Drawn(kLargestSeed, "layers.0.pe.bias", Init::Normal(0.02), 3);
  for (int i = 0; i < 3; ++i) EXPECT_NEAR(biases[i], normal[i] * 0.02, 1e-16) << i;
  EXPECT_THAT(Drawn(7, "head.bias", Init::Constant(1.5), 2), testing::ElementsAre(1.5, 1.5));
}

TEST(InitialValues, BetweenTwoBounds) {
  EXPECT_THAT(Drawn(7, "embedding.weight", Init::Between(2, 4), 4),
              testing::Pointwise(testing::DoubleEq(), {2.6898808334420707, 3.2795672676919898,
                                                       3.296994367291986, 3.7614918328239744}));
  const auto many = Drawn(3, "pe.slope", Init::Between(0.01, 0.02), 10000);
  double sum = 0;
  for (const double value : many) {
    ASSERT_GE(value, 0.01);
    ASSERT_LT(value, 0.02);
    sum += value;
  }
  // The mean of 10,000 values has a standard error of 0.01/sqrt(12 * 10000) = 2.9e-5.
  EXPECT_NEAR(sum / 10000, 0.015, 1.5e-4);
}

TEST(InitialValues, ByHead) {
  EXPECT_THAT(Drawn(0, "pe.slope", Init::Each({0.5, 0.25, 0.125}), 7),
              testing::ElementsAre(0.5, 0.25, 0.125, 0.5, 0.25, 0.125, 0.5));
  EXPECT_EQ(Drawn(0, "pe.slope", Init::Each({0.5, 0.25}), 4),
            Drawn(1, "another", Init::Each({0.5, 0.25}), 4))
      << "nothing is drawn";
}

TEST(InitialValues, GivenForEachSeed) {
  const Init init = Init::OfSeed([](std::int64_t seed) {
    return std::vector<double>{static_cast<double>(seed), 0.5};
  });
  EXPECT_THAT(Drawn(3, "pe.weight", init, 2), testing::ElementsAre(3, 0.5));
  EXPECT_THAT(Drawn(4, "pe.weight", init, 2), testing::ElementsAre(4, 0.5));
  EXPECT_THROW(Drawn(3, "pe.weight", init, 3), std::logic_error);
}

// A quantity that a model keeps positive as exp(w) starts between its given bounds.
TEST(InitialValues, ThroughATransform) {
  const auto log = [](double x) { return std::log(x); };
  const auto plain = Drawn(5, "pe.a", Init::Between(0.5, 2), 100);
  const auto kept = Drawn(5, "pe.a", Init::Between(0.5, 2).Through(log), 100);
  for (std::size_t i = 0; i < plain.size(); ++i) EXPECT_EQ(kept[i], std::log(plain[i]));
  EXPECT_THAT(Drawn(5, "pe.a", Init::Each({1, 4}).Through(log), 2),
              testing::ElementsAre(0, std::log(4.0)));
  EXPECT_EQ(Drawn(5, "pe.a", Init::Constant(1).Through(log), 1).front(), 0);
}

TEST(InitialValues, DependOnSeedAndName) {
  std::set<double> different;
  for (const std::int64_t seed : {std::int64_t{0}, std::int64_t{1}, kLargestSeed}) {
    for (const char* name : {"pe.a", "pe.b"}) {
      different.insert(Drawn(seed, name, Init::Between(0, 1), 1).front());
    }
  }
  EXPECT_EQ(different.size(), 6u);
}

}  // namespace
}  // namespace pelab::trainer
