#include "worker/agent/gpu_faults.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "tests/support/status_matchers.h"
#include "worker/agent/worker_metrics.h"

namespace pelab::agent {
namespace {

using ::testing::HasSubstr;

class GpuFaultsTest : public testing::Test {
 protected:
  GpuFaultsTest() : file_(testing::TempDir() + "xids") {
    setenv("PELAB_FAKE_XIDS", file_.c_str(), 1);
  }
  ~GpuFaultsTest() override {
    unsetenv("PELAB_FAKE_XIDS");
    std::remove(file_.c_str());
  }
  static std::vector<SlotPlan> Plans() {
    std::vector<SlotPlan> plans;
    for (const int gpu : {0, 1}) {
      SlotPlan plan{.cuda_visible_devices = gpu == 0 ? "GPU-11111111-0000" : "GPU-22222222-0000"};
      plan.slot.set_device(absl::StrCat("cuda:", gpu));
      plans.push_back(plan);
    }
    return plans;
  }
  // What has been counted, once `events` events have come.
  static std::string Await(const GpuFaults& faults, std::uint64_t events) {
    const absl::Time end = absl::Now() + absl::Seconds(30);
    while (absl::Now() < end) {
      std::string text;
      std::uint64_t sum = 0;
      for (const GpuFaults::Count& count : faults.Counts()) {
        sum += count.times;
        absl::StrAppend(&text, count.device, " ", count.xid, ": ", count.times, "; ");
      }
      if (sum >= events) return text;
      absl::SleepFor(absl::Milliseconds(2));
    }
    return "nothing came";
  }
  void Happen(const std::string& xids) { std::ofstream(file_) << xids; }

  const std::string file_;
};

TEST_F(GpuFaultsTest, ErrorsOfProgramsAreCountedAndBreakNothing) {
  Happen("13 31 13");
  const GpuFaults faults(*LoadNvml(PELAB_FAKE_NVML), Plans());
  EXPECT_EQ(Await(faults, 3), "cuda:1 13: 2; cuda:1 31: 1; ");
  EXPECT_EQ(faults.Broken(), "");
}

TEST_F(GpuFaultsTest, TheFirstFaultOfTheHardwareCounts) {
  Happen("13 79 48");
  const GpuFaults faults(*LoadNvml(PELAB_FAKE_NVML), Plans());
  EXPECT_EQ(Await(faults, 3), "cuda:1 13: 1; cuda:1 48: 1; cuda:1 79: 1; ");
  EXPECT_EQ(faults.Broken(), "GPU cuda:1 has Xid 79");
  WorkerMetrics metrics("w1", testing::TempDir(), nullptr, Plans(), &faults);
  EXPECT_THAT(metrics.Text(),
              HasSubstr("pelab_gpu_xid_errors_total{worker=\"w1\",gpu=\"cuda:1\",xid=\"79\"} 1\n"));
}

TEST_F(GpuFaultsTest, HeartbeatsHaveTheCounts) {
  Happen("13 79 13");
  const GpuFaults faults(*LoadNvml(PELAB_FAKE_NVML), Plans());
  Await(faults, 3);
  v1::Heartbeat beat;
  AddErrors(faults, beat);
  ASSERT_EQ(beat.gpu_errors_size(), 2);
  EXPECT_EQ(beat.gpu_errors(0).device(), "cuda:1");
  EXPECT_EQ(beat.gpu_errors(0).xid(), 13u);
  EXPECT_EQ(beat.gpu_errors(0).times(), 2u);
  EXPECT_EQ(beat.gpu_errors(1).xid(), 79u);
}

TEST_F(GpuFaultsTest, AMemoryErrorHasNoNumber) {
  Happen("ecc");
  const GpuFaults faults(*LoadNvml(PELAB_FAKE_NVML), Plans());
  EXPECT_EQ(Await(faults, 1), "cuda:1 0: 1; ");
  EXPECT_EQ(faults.Broken(), "GPU cuda:1 has a memory error that was not corrected");
}

TEST_F(GpuFaultsTest, OtherGpusAreNotThisWorkers) {
  Happen("79 13@0");  // of cuda:1, then of cuda:0
  const GpuFaults faults(*LoadNvml(PELAB_FAKE_NVML), {Plans()[0]});
  EXPECT_EQ(Await(faults, 1), "cuda:0 13: 1; ");
  EXPECT_EQ(faults.Broken(), "");
}

TEST_F(GpuFaultsTest, WithoutGpusNothingIsWatched) {
  const GpuFaults without(nullptr, {SlotPlan()});
  EXPECT_EQ(without.Broken(), "");
}

TEST(IsFatalXid, NamesFaultsThatAResetOrARepairMends) {
  for (const int xid : {46, 48, 62, 64, 74, 79, 95, 110, 119, 120, 140}) {
    EXPECT_TRUE(IsFatalXid(xid)) << xid;
  }
  // A program's exception, page fault and end; a row that was remapped; a contained error.
  for (const int xid : {0, 1, 13, 31, 43, 45, 63, 94, 154}) EXPECT_FALSE(IsFatalXid(xid)) << xid;
}

}  // namespace
}  // namespace pelab::agent
