#include "worker/agent/devices.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/support/status_matchers.h"
#include "worker/agent/loads.h"

namespace pelab::agent {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Three GPUs; the first one has a MIG slice.
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
  absl::StatusOr<GpuLoad> Load(const std::string& uuid) override {
    if (uuid == "GPU-aaaa1111") return GpuLoad{50, 20'000, 80'000, 12.5};
    if (uuid == "MIG-cccc4444") return GpuLoad{std::nullopt, 1'000, 10'000};
    return absl::NotFoundError("it fell off the bus");
  }
  absl::StatusOr<std::unique_ptr<NvmlEvents>> Watch(const std::vector<std::string>&) override {
    return absl::UnimplementedError("an old driver");
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
  EXPECT_THAT(Visible("0,GPU-a"), ElementsAre("GPU-aaaa1111"));  // a prefix of two UUIDs
  EXPECT_THAT(Visible("NoDevFiles"), IsEmpty());
  EXPECT_THAT(Visible("MIG-dddd"), IsEmpty());
  // A device that is named twice makes the list empty.
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
  EXPECT_EQ(plans[1].device_memory_bytes, 50u) << "not more than its part";
  EXPECT_EQ(PlanSlots({{"GPU-x", "H200", 100}}, {}, 8, 999)[0].device_memory_bytes, 0u);
}

TEST(PlanSlots, SayHowManyJobsATrainerTakes) {
  const std::vector<GpuInfo> gpus = {{"GPU-x", "H200", 100}};
  EXPECT_EQ(PlanSlots(gpus, {}, 8, 999)[0].slot.pack(), kGpuPack);
  EXPECT_EQ(PlanSlots({}, {}, 8, 999)[0].slot.pack(), kCpuPack);
  EXPECT_EQ(PlanSlots(gpus, {.pack = 1}, 8, 999)[0].slot.pack(), 1);
  EXPECT_EQ(PlanSlots({}, {.pack = 5}, 8, 999)[7].slot.pack(), 5);
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

TEST(DeviceLoads, OfEachDeviceOnceAndOnlyThoseThatAnswer) {
  const std::vector<GpuInfo> gpus = {{"GPU-aaaa1111", "card", 80'000},
                                     {"GPU-aaab2222", "card", 80'000},
                                     {"MIG-cccc4444", "slice", 10'000}};
  DeviceLoads loads(std::make_unique<FakeNvml>(), PlanSlots(gpus, {.slots_per_device = 2}, 8, 1));
  const std::vector<v1::DeviceLoad> sample = loads.Sample();
  ASSERT_EQ(sample.size(), 2u) << "the second does not answer";
  EXPECT_EQ(sample[0].device(), "cuda:0");
  EXPECT_EQ(sample[0].busy_percent(), 50);
  EXPECT_EQ(sample[0].memory_used(), 20'000u);
  EXPECT_EQ(sample[0].energy_joules(), 12.5);
  EXPECT_FALSE(sample[1].has_energy_joules());
  EXPECT_EQ(sample[1].device(), "cuda:2");
  EXPECT_FALSE(sample[1].has_busy_percent());
  EXPECT_EQ(sample[1].memory_total(), 10'000u);
  EXPECT_THAT(DeviceLoads(nullptr, PlanSlots(gpus, {}, 8, 1)).Sample(), IsEmpty());
  EXPECT_THAT(DeviceLoads(std::make_unique<FakeNvml>(), PlanSlots({}, {}, 8, 1)).Sample(),
              IsEmpty())
      << "slots on the CPU";
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
  EXPECT_EQ((*nvml)->Device(1)->memory_bytes, 0u);  // it does not report its memory
  EXPECT_THAT((*nvml)->Device(2),
              StatusIs(absl::StatusCode::kUnavailable,
                       testing::HasSubstr("cannot open GPU 2: as the test wants it")));
  EXPECT_EQ((*nvml)->DeviceByUuid("GPU-22222222-0000")->name, "Fake B");
  const auto busy = (*nvml)->Load("GPU-22222222-0000");
  ASSERT_THAT(busy, IsOk());
  EXPECT_EQ(busy->busy_percent, 87);
  EXPECT_EQ(busy->memory_total, 0u) << "it does not say";
  const auto unsaid = (*nvml)->Load("GPU-11111111-0000");
  ASSERT_THAT(unsaid, IsOk());
  EXPECT_EQ(unsaid->busy_percent, std::nullopt);
  EXPECT_EQ(unsaid->memory_used, 100u);
  EXPECT_THAT((*nvml)->Load("GPU-9"),
              StatusIs(absl::StatusCode::kNotFound, testing::HasSubstr("GPU-9")));
  EXPECT_THAT((*nvml)->DeviceByUuid("MIG-9"),
              StatusIs(absl::StatusCode::kNotFound, testing::HasSubstr("MIG-9")));
}

}  // namespace
}  // namespace pelab::agent
