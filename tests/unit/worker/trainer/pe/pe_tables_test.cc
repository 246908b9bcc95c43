// The tables behind the positional encodings against the values of tests/golden/pe_tables.py.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>

#include "tests/unit/worker/trainer/jobs_fixture.h"
#include "worker/trainer/pe/tables.h"

namespace pelab::trainer {
namespace {

constexpr double kTolerance = 1e-12;

void ExpectNear(const std::vector<double>& found, const nlohmann::json& golden) {
  ASSERT_EQ(found.size(), golden.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    EXPECT_NEAR(found[i], golden[i].get<double>(), kTolerance) << "at " << i;
  }
}

TEST(PeTables, T5BucketsMatchTheGoldenValues) {
  const nlohmann::json cases = Golden("pe_tables.json")["t5"];
  ASSERT_EQ(cases.size(), 5u);
  for (const auto& golden : cases) {
    SCOPED_TRACE("causal " + golden["causal"].dump() + ", buckets " + golden["buckets"].dump());
    std::int64_t relative = golden["first"];
    for (const std::int64_t bucket : golden["bucket"]) {
      EXPECT_EQ(T5Bucket(relative, golden["causal"], golden["buckets"], golden["max_distance"]),
                bucket)
          << "key - query = " << relative;
      ++relative;
    }
  }
}

TEST(PeTables, T5BucketsAreInRangeWhateverTheCatalogAllows) {
  for (const bool causal : {true, false}) {
    for (std::int64_t buckets = causal ? 2 : 4; buckets <= 64; buckets += causal ? 2 : 4) {
      for (const std::int64_t max_distance :
           {buckets / 2 + 1, std::int64_t{128}, std::int64_t{65536}}) {
        for (std::int64_t relative = -300; relative <= 300; ++relative) {
          const std::int64_t bucket = T5Bucket(relative, causal, buckets, max_distance);
          ASSERT_GE(bucket, 0);
          ASSERT_LT(bucket, buckets);
          if (!causal && relative > 0) {
            EXPECT_EQ(bucket, buckets / 2 + T5Bucket(-relative, causal, buckets, max_distance));
          }
        }
      }
    }
  }
}

TEST(PeTables, AlibiSlopesMatchTheGoldenValues) {
  for (const auto& golden : Golden("pe_tables.json")["slopes"]) {
    SCOPED_TRACE("heads " + golden["heads"].dump());
    ExpectNear(GeometricSlopes(golden["heads"]), golden["geometric"]);
    ExpectNear(ExponentialSlopes(golden["heads"]), golden["exponential"]);
  }
}

TEST(PeTables, SinusoidsMatchTheGoldenValues) {
  for (const auto& golden : Golden("pe_tables.json")["sinusoid"]) {
    std::vector<double> interleaved, half_split;
    for (const auto& row : golden["interleaved"])
      interleaved.insert(interleaved.end(), row.begin(), row.end());
    for (const auto& row : golden["half_split"])
      half_split.insert(half_split.end(), row.begin(), row.end());
    ExpectNear(Sinusoid(golden["length"], golden["width"], 10000, SinusoidLayout::kInterleaved),
               interleaved);
    ExpectNear(Sinusoid(golden["length"], golden["width"], 10000, SinusoidLayout::kHalfSplit),
               half_split);
  }
}

TEST(PeTables, RotaryFrequenciesMatchTheGoldenValues) {
  for (const auto& golden : Golden("pe_tables.json")["rope"]) {
    ExpectNear(Frequencies(golden["width"], golden["base"]), golden["frequencies"]);
  }
}

TEST(PeTables, FactorsOfPairsMatchTheGoldenValues) {
  const nlohmann::json cases = Golden("pe_tables.json")["turns"];
  ASSERT_EQ(cases.size(), 3u);
  const auto flat = [](const nlohmann::json& table) {
    nlohmann::json values = nlohmann::json::array();
    for (const auto& position : table) {
      for (const auto& pair : position) values.insert(values.end(), pair.begin(), pair.end());
    }
    return values;
  };
  for (const auto& golden : cases) {
    ExpectNear(RotaryRotations(golden["length"], golden["width"], golden["base"]),
               flat(golden["rotary"]));
    ExpectNear(SlicedRotations(golden["length"], golden["width"], golden["base"]),
               flat(golden["sliced"]));
    ExpectNear(XposBases(golden["width"]), golden["xpos"]);
  }
}

// Half of the pairs in the published table are zero at position 0, so it is not a rotation.
TEST(PeTables, SlicedTurnsAreNoRotations) {
  const auto rotations = SlicedRotations(1, 16, 10000);
  for (int pair = 0; pair < 8; ++pair) {
    const double size = std::hypot(rotations[2 * pair], rotations[2 * pair + 1]);
    EXPECT_NEAR(size, pair < 4 ? 0 : std::sqrt(2.0), kTolerance) << "pair " << pair;
  }
}

}  // namespace
}  // namespace pelab::trainer
