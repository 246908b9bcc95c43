#include "worker/agent/energy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace pelab::agent {
namespace {

using ::testing::Optional;

class EnergyMeterTest : public testing::Test {
 protected:
  int readings_ = 0;
  std::map<std::string, std::optional<double>> joules_ = {{"GPU-a", 1000.0}, {"GPU-b", 50.0}};
  EnergyMeter meter_{[this](const std::string& uuid) {
    ++readings_;
    return joules_.at(uuid);
  }};
};

TEST_F(EnergyMeterTest, AnAttemptAloneHasAllOfItsGpu) {
  meter_.Begin(1, "GPU-a");
  joules_["GPU-a"] = 1012.5;
  EXPECT_THAT(meter_.End(1), Optional(12.5));
  EXPECT_EQ(readings_, 2);
  // The energy while nobody has the GPU is nobody's.
  joules_["GPU-a"] = 5000.0;
  meter_.Begin(2, "GPU-a");
  EXPECT_THAT(meter_.End(2), Optional(0.0));
}

TEST_F(EnergyMeterTest, AttemptsAtTheSameTimeShareInEqualParts) {
  meter_.Begin(1, "GPU-a");
  joules_["GPU-a"] = 1010.0;  // 10 for the first
  meter_.Begin(2, "GPU-a");
  joules_["GPU-a"] = 1030.0;  // 10 for each
  meter_.Begin(3, "GPU-a");
  joules_["GPU-a"] = 1060.0;  // 10 for each
  EXPECT_THAT(meter_.End(1), Optional(30.0));
  joules_["GPU-a"] = 1064.0;  // 2 for each of the others
  EXPECT_THAT(meter_.End(2), Optional(22.0));
  joules_["GPU-a"] = 1065.0;
  EXPECT_THAT(meter_.End(3), Optional(13.0));  // 65 in all
}

TEST_F(EnergyMeterTest, GpusAreApart) {
  meter_.Begin(1, "GPU-a");
  meter_.Begin(2, "GPU-b");
  joules_["GPU-a"] = 1003.0;
  joules_["GPU-b"] = 57.0;
  EXPECT_THAT(meter_.End(2), Optional(7.0));
  joules_["GPU-b"] = std::nullopt;
  EXPECT_THAT(meter_.End(1), Optional(3.0));
}

TEST_F(EnergyMeterTest, WhoHadTheGpuWhenAReadingFailedIsNotMeasured) {
  meter_.Begin(1, "GPU-a");
  joules_["GPU-a"] = std::nullopt;
  meter_.Begin(2, "GPU-a");
  joules_["GPU-a"] = 1010.0;
  meter_.Begin(3, "GPU-a");
  joules_["GPU-a"] = 1040.0;
  // All three had it, so a third is the third one's.
  EXPECT_EQ(meter_.End(1), std::nullopt);
  EXPECT_EQ(meter_.End(2), std::nullopt);
  EXPECT_THAT(meter_.End(3), Optional(10.0));
  meter_.Begin(4, "GPU-a");
  joules_["GPU-a"] = std::nullopt;
  EXPECT_EQ(meter_.End(4), std::nullopt);
}

TEST_F(EnergyMeterTest, WhoHadTheGpuWhenItsCounterBeganAgainIsNotMeasured) {
  meter_.Begin(1, "GPU-a");
  joules_["GPU-a"] = 2.0;
  meter_.Begin(2, "GPU-a");
  joules_["GPU-a"] = 6.0;
  EXPECT_EQ(meter_.End(1), std::nullopt);
  EXPECT_THAT(meter_.End(2), Optional(2.0)) << "its half";
}

TEST_F(EnergyMeterTest, AnAttemptBeginsAndEndsOnce) {
  EXPECT_EQ(meter_.End(1), std::nullopt);
  EXPECT_EQ(readings_, 0) << "it has no GPU";
  meter_.Begin(1, "GPU-a");
  joules_["GPU-a"] = 1004.0;
  meter_.Begin(1, "GPU-a");
  joules_["GPU-a"] = 1005.0;
  EXPECT_THAT(meter_.End(1), Optional(5.0));
  EXPECT_EQ(meter_.End(1), std::nullopt);
  EXPECT_EQ(readings_, 3);
}

TEST(EnergyMeter, TakesCallsFromSeveralThreads) {
  double used = 0;
  EnergyMeter meter([&used](const std::string&) { return std::optional(used += 1); });
  std::vector<std::thread> threads;
  for (int first = 0; first < 4; ++first) {
    threads.emplace_back([&meter, first] {
      for (int id = first; id < 400; id += 4) {
        meter.Begin(id, "GPU-a");
        EXPECT_TRUE(meter.End(id).has_value());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(used, 800);
}

}  // namespace
}  // namespace pelab::agent
