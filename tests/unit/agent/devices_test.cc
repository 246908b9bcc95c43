#include "worker/agent/devices.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/support/status_matchers.h"

namespace pelab::agent {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Three GPUs, the first of which has a MIG slice.
class FakeNvml final : public Nvml {
 public:
  absl::StatusOr<int> Count() override { return 3; }
  absl::StatusOr<GpuInfo> Device(int index) override {
    static const char* const uuids[] = {"GPU-aaaa1111", "GPU-aaab2222", "GPU-bbbb3333"};
    return GpuInfo{uuids[index], absl::StrCat("card ", index), 80'000};
  }
  absl::StatusOr<GpuInfo> DeviceByUuid(const std::string& uuid) override {
    if (uuid != "MIG-cccc4444") return absl::NotFoundError("none");
    return GpuInfo{uuid, "slice", 10'000};
  }
};

std::vector<std::string> Visible(const std::optional<std::string>& visible) {
  FakeNvml nvml;
  const auto gpus = VisibleGpus(nvml, visible);
  EXPECT_THAT(gpus, IsOk());
  std::vector<std::string> uuids;
  for (const GpuInfo& gpu : *gpus) uuids.push_back(gpu.uuid);
  return uuids;
}

TEST(VisibleGpus, FollowsCudaVisibleDevicesAsCudaDoes) {
  EXPECT_THAT(Visible(std::nullopt), ElementsAre("GPU-aaaa1111", "GPU-aaab2222", "GPU-bbbb3333"));
  EXPECT_THAT(Visible(""), IsEmpty());
  EXPECT_THAT(Visible("2,0"), ElementsAre("GPU-bbbb3333", "GPU-aaaa1111"));
  EXPECT_THAT(Visible(" 1 , 2"), ElementsAre("GPU-aaab2222", "GPU-bbbb3333"));
  EXPECT_THAT(Visible("GPU-bbbb3333"), ElementsAre("GPU-bbbb3333"));
  EXPECT_THAT(Visible("GPU-b,0"), ElementsAre("GPU-bbbb3333", "GPU-aaaa1111"));
  EXPECT_THAT(Visible("MIG-cccc4444"), ElementsAre("MIG-cccc4444"));
  // The first entry that names no device ends the list.
  EXPECT_THAT(Visible("1,7,0"), ElementsAre("GPU-aaab2222"));
  EXPECT_THAT(Visible("-1"), IsEmpty());
  EXPECT_THAT(Visible("0,-1,1"), ElementsAre("GPU-aaaa1111"));
  EXPECT_THAT(Visible("0,GPU-a"), ElementsAre("GPU-aaaa1111"));  // the beginning of two
  EXPECT_THAT(Visible("NoDevFiles"), IsEmpty());
  EXPECT_THAT(Visible("MIG-dddd"), IsEmpty());
  // A device that is named twice empties it.
  EXPECT_THAT(Visible("0,1,0"), IsEmpty());
  EXPECT_THAT(Visible("0,GPU-aaaa"), IsEmpty());
}

TEST(PlanSlots, SharesEachGpu) {
  const auto plans =
      PlanSlots({{"GPU-x", "H200", 100}, {"GPU-y", "H200", 100}}, {.slots_per_device = 2}, 8, 999);
  ASSERT_EQ(plans.size(), 4u);
  EXPECT_EQ(plans[3].slot.slot(), 3);
  EXPECT_EQ(plans[3].slot.device(), "cuda:1");
  EXPECT_EQ(plans[3].slot.device_kind(), "gpu");
  EXPECT_EQ(plans[3].slot.device_name(), "H200");
  EXPECT_EQ(plans[3].slot.memory_bytes(), 50u);
  EXPECT_EQ(plans[3].trainer_device, "cuda:0");
  EXPECT_EQ(plans[3].cuda_visible_devices, "GPU-y");
  EXPECT_EQ(plans[1].cuda_visible_devices, "GPU-x");
}

TEST(PlanSlots, FallsBackToTheCpu) {
  EXPECT_EQ(PlanSlots({}, {.threads_per_slot = 2}, 9, 100).size(), 4u);
  EXPECT_EQ(PlanSlots({}, {.threads_per_slot = 16}, 9, 100).size(), 1u);
  const auto plans = PlanSlots({}, {.cpu_slots = 5}, 2, 100);
  ASSERT_EQ(plans.size(), 5u);
  EXPECT_EQ(plans[4].slot.slot(), 4);
  EXPECT_EQ(plans[4].slot.device(), "cpu");
  EXPECT_EQ(plans[4].slot.memory_bytes(), 20u);
  EXPECT_EQ(plans[4].trainer_device, "cpu");
  EXPECT_EQ(plans[4].cuda_visible_devices, "");
}

TEST(Nvml, AMissingLibraryIsNotFound) {
  EXPECT_THAT(LoadNvml("libno-such-library.so.1"),
              StatusIs(absl::StatusCode::kNotFound, testing::HasSubstr("libno-such-library.so.1")));
  EXPECT_THAT(LoadNvml("libc.so.6"),
              StatusIs(absl::StatusCode::kNotFound, testing::HasSubstr("lacks a function")));
}

TEST(Nvml, ReadsThroughTheLibrary) {
  const auto nvml = LoadNvml(PELAB_FAKE_NVML);
  ASSERT_THAT(nvml, IsOk());
  EXPECT_EQ((*nvml)->Count().value_or(-1), 2);
  const auto first = (*nvml)->Device(0);
  ASSERT_THAT(first, IsOk());
  EXPECT_EQ(first->uuid, "GPU-11111111-0000");
  EXPECT_EQ(first->name, "Fake A");
  EXPECT_EQ(first->memory_bytes, 1000u);
  EXPECT_EQ((*nvml)->Device(1)->memory_bytes, 0u);  // it does not say
  EXPECT_THAT((*nvml)->Device(2),
              StatusIs(absl::StatusCode::kUnavailable,
                       testing::HasSubstr("cannot open GPU 2: as the test wants it")));
  EXPECT_EQ((*nvml)->DeviceByUuid("GPU-22222222-0000")->name, "Fake B");
  EXPECT_THAT((*nvml)->DeviceByUuid("MIG-9"),
              StatusIs(absl::StatusCode::kNotFound, testing::HasSubstr("MIG-9")));
}

}  // namespace
}  // namespace pelab::agent
