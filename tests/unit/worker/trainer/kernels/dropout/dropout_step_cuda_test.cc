// The kernels of dropout_step.h against the CPU's masks and keys, bit for bit.
#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <vector>

#include "core/base/random.h"
#include "tests/support/cuda_emulation.h"
#include "tests/unit/worker/trainer/kernels/members_fixture.h"
#include "worker/trainer/kernels/dropout/dropout_mask.h"
#include "worker/trainer/kernels/dropout/dropout_step_kernels.cuh"

namespace pelab::trainer::dropout_step_cuda_test {
namespace {

constexpr std::uint64_t kKey = 0x0123456789abcdef;
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// The masks of the members, one after another.
template <int kVector>
std::vector<float> Fill(const DropoutStream& stream, std::int64_t count, std::int64_t members = 1) {
  std::vector<float> mask(members * count, kNan);
  const auto blocks =
      static_cast<unsigned>((count + kVector * kDropoutThreads - 1) / (kVector * kDropoutThreads));
  cuda_emulation::Launch({blocks, 1, static_cast<unsigned>(members)}, {kDropoutThreads}, 0,
                         DropoutMaskKernel<kVector>, stream, count, mask.data());
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

// Counts a step for each member and makes its keys.
void Begin(const DropoutStep& step) {
  cuda_emulation::Launch({1, 1, static_cast<unsigned>(step.members)}, {kDropoutThreads}, 0,
                         DropoutStepKernel<kDropoutThreads>, step);
}

// The key of a place in a step.
std::uint64_t KeyOf(std::int64_t seed, std::int64_t step, std::int64_t place) {
  return CounterRandom(static_cast<std::uint64_t>(seed), "dropout",
                       static_cast<std::uint64_t>(step))
      .At(static_cast<std::uint64_t>(place));
}

TEST(DropoutStepCuda, KeysAreThoseOfTheCpu) {
  for (const std::int64_t seed :
       {std::int64_t{0}, std::int64_t{7}, std::numeric_limits<std::int64_t>::max()}) {
    for (const std::int64_t places : {1, 2, 24, 1001}) {
      std::int64_t step = 4;
      std::vector<std::uint32_t> keys(2 * places + 1, 99);
      const std::uint64_t seed_key = DropoutSeedKey(seed);
      const DropoutStep launched{1, &seed_key, places, &step, keys.data()};
      for (const std::int64_t expected : {5, 6}) {
        Begin(launched);
        ASSERT_EQ(step, expected);
        for (std::int64_t place = 0; place < places; ++place) {
          const std::uint64_t key = KeyOf(seed, step, place);
          ASSERT_EQ(keys[2 * place], static_cast<std::uint32_t>(key)) << place;
          ASSERT_EQ(keys[2 * place + 1], static_cast<std::uint32_t>(key >> 32)) << place;
        }
        ASSERT_EQ(keys[2 * places], 99U);
      }
    }
  }
}

// Each member has its own seed and its own count of steps.
TEST(DropoutStepCuda, KeysOfMembers) {
  const std::vector<std::int64_t> seeds = {7, 0, std::numeric_limits<std::int64_t>::max()};
  std::vector<std::uint64_t> seed_keys;
  for (const std::int64_t seed : seeds) seed_keys.push_back(DropoutSeedKey(seed));
  for (const std::int64_t places : {1, 2, 3, 24, 1001}) {
    SCOPED_TRACE(places);
    std::vector<std::int64_t> steps = {4, -1, std::int64_t{1} << 33}, expected_steps = steps;
    std::vector<std::uint32_t> keys(kMembers * 2 * places + 1, 99);
    for (int repeat = 0; repeat < 2; ++repeat) {
      Begin({kMembers, seed_keys.data(), places, steps.data(), keys.data()});
      for (std::int64_t& step : expected_steps) ++step;
      ASSERT_EQ(steps, expected_steps);
      std::vector<std::uint32_t> expected;
      for (std::int64_t m = 0; m < kMembers; ++m) {
        for (std::int64_t place = 0; place < places; ++place) {
          const std::uint64_t key = KeyOf(seeds[m], steps[m], place);
          expected.push_back(static_cast<std::uint32_t>(key));
          expected.push_back(static_cast<std::uint32_t>(key >> 32));
        }
      }
      expected.push_back(99);
      ASSERT_EQ(keys, expected);
    }
  }
}

// With a step's keys the kernels get the CPU's masks at that place of that step, for each member.
TEST(DropoutStepCuda, PlacesOfAStep) {
  constexpr std::int64_t kPlaces = 5;
  const std::vector<std::int64_t> seeds = {3, 4, 1000};
  std::vector<std::uint64_t> seed_keys;
  for (const std::int64_t seed : seeds) seed_keys.push_back(DropoutSeedKey(seed));
  std::vector<std::int64_t> steps(kMembers, -1);
  std::vector<std::uint32_t> keys(kMembers * 2 * kPlaces);
  Begin({kMembers, seed_keys.data(), kPlaces, steps.data(), keys.data()});
  for (std::int64_t place = 0; place < kPlaces; ++place) {
    DropoutStream stream = MakeDropoutStream(0, 0.1, 40);
    stream.keys = &keys[2 * place];
    stream.member_keys = 2 * kPlaces;
    for (const std::int64_t count : {1, 333, 336, 2052}) {
      SCOPED_TRACE(testing::Message() << "place " << place << ", " << count << " elements");
      std::vector<float> expected;
      for (std::int64_t m = 0; m < kMembers; ++m) {
        std::vector<float> own(count);
        FillDropoutMask(MakeDropoutStream(KeyOf(seeds[m], 0, place), 0.1, 40), 0, count,
                        own.data());
        Append(own, &expected);
      }
      EXPECT_EQ(Fill<1>(stream, count, kMembers), expected);
      if (count % kMaskVector == 0) {
        EXPECT_EQ(Fill<kMaskVector>(stream, count, kMembers), expected);
      }
      EXPECT_EQ(Fill<kMaskVector>(stream, count), PartOf(expected, 0));
    }
  }
}

}  // namespace
}  // namespace pelab::trainer::dropout_step_cuda_test
