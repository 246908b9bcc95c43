// The kernels of dropout_step.h against the CPU's masks and keys, bit for bit.
#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <vector>

#include "core/base/random.h"
#include "tests/support/cuda_emulation.h"
#include "worker/trainer/kernels/dropout_mask.h"
#include "worker/trainer/kernels/dropout_step_kernels.cuh"

namespace pelab::trainer {
namespace {

constexpr std::uint64_t kKey = 0x0123456789abcdef;
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

template <int kVector>
std::vector<float> Fill(const DropoutStream& stream, std::int64_t count) {
  std::vector<float> mask(count, kNan);
  const auto blocks =
      static_cast<unsigned>((count + kVector * kDropoutThreads - 1) / (kVector * kDropoutThreads));
  cuda_emulation::Launch({blocks}, {kDropoutThreads}, 0, DropoutMaskKernel<kVector>, stream, count,
                         mask.data());
  return mask;
}

TEST(DropoutStepCuda, MasksAreThoseOfTheCpu) {
  for (const double p : {0.0, 0.1, 0.5, 0.999}) {
    for (const std::int64_t first :
         {std::int64_t{0}, std::int64_t{12345}, (std::int64_t{1} << 32) - 100}) {
      for (const std::int64_t count : {1, 3, 4, 1000, 4097}) {
        std::vector<float> expected(count);
        const DropoutStream stream = MakeDropoutStream(kKey, p, first);
        FillDropoutMask(stream, 0, count, expected.data());
        ASSERT_EQ(Fill<1>(stream, count), expected) << p << " " << first << " " << count;
        ASSERT_EQ(Fill<kMaskVector>(stream, count), expected) << p << " " << first << " " << count;
      }
    }
  }
}

TEST(DropoutStepCuda, KeysAreThoseOfTheCpu) {
  for (const std::int64_t seed :
       {std::int64_t{0}, std::int64_t{7}, std::numeric_limits<std::int64_t>::max()}) {
    for (const std::int64_t places : {1, 2, 24, 1001}) {
      std::int64_t step = 4;
      std::vector<std::uint32_t> keys(2 * places + 1, 99);
      const DropoutStep launched{DropoutSeedKey(seed), places, &step, keys.data()};
      for (const std::int64_t expected : {5, 6}) {
        cuda_emulation::Launch({1}, {kDropoutThreads}, 0, DropoutStepKernel<kDropoutThreads>,
                               launched);
        ASSERT_EQ(step, expected);
        const CounterRandom random(static_cast<std::uint64_t>(seed), "dropout",
                                   static_cast<std::uint64_t>(step));
        for (std::int64_t place = 0; place < places; ++place) {
          const std::uint64_t key = random.At(static_cast<std::uint64_t>(place));
          ASSERT_EQ(keys[2 * place], static_cast<std::uint32_t>(key)) << place;
          ASSERT_EQ(keys[2 * place + 1], static_cast<std::uint32_t>(key >> 32)) << place;
        }
        ASSERT_EQ(keys[2 * places], 99U);
      }
    }
  }
}

// What a step's kernels see through device_keys are the masks of the CPU at that place of that step.
TEST(DropoutStepCuda, PlacesOfAStep) {
  constexpr std::int64_t kSeed = 3, kPlaces = 5, kCount = 333;
  std::int64_t step = -1;
  std::vector<std::uint32_t> keys(2 * kPlaces);
  cuda_emulation::Launch({1}, {kDropoutThreads}, 0, DropoutStepKernel<kDropoutThreads>,
                         DropoutStep{DropoutSeedKey(kSeed), kPlaces, &step, keys.data()});
  for (std::int64_t place = 0; place < kPlaces; ++place) {
    std::vector<float> expected(kCount);
    const std::uint64_t key =
        CounterRandom(kSeed, "dropout", 0).At(static_cast<std::uint64_t>(place));
    FillDropoutMask(MakeDropoutStream(key, 0.1, 40), 0, kCount, expected.data());
    DropoutStream stream = MakeDropoutStream(0, 0.1, 40);
    stream.device_keys = &keys[2 * place];
    EXPECT_EQ(Fill<kMaskVector>(stream, kCount), expected) << place;
  }
}

}  // namespace
}  // namespace pelab::trainer
