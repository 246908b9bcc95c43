// The kernel of adamw.h against its formulas in double.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <vector>

#include "tests/support/cuda_emulation.h"
#include "tests/unit/worker/trainer/kernels/random_rows_fixture.h"
#include "worker/trainer/kernels/adamw/adamw_kernels.cuh"

namespace pelab::trainer {
namespace {

constexpr AdamWSettings kSettings{0.98, 0.9, 1e-8, 0.05};
constexpr double kTightly = 1e-6;

double LearningRate(std::int64_t step) { return step == 0 ? 0 : 0.1 / static_cast<double>(step); }

// Runs steps with new gradients. The memory begins `offset` floats after an aligned address.
template <int kVector>
void ExpectSteps(std::int64_t count, std::int64_t offset, bool with_copy, bool with_count) {
  std::vector<float> parameters = RandomElements<float>(count + offset, 1),
                     gradient(count + offset), first(count + offset), second(count + offset);
  std::vector<Bf16> rounded(count + offset);
  std::vector<double> p(parameters.begin() + offset, parameters.end()), m(count), v(count);
  std::vector<AdamWRates> rates;
  constexpr std::int64_t kSteps = 4;
  for (std::int64_t step = 0; step < kSteps; ++step)
    rates.push_back(AdamWRatesAt(kSettings, step, LearningRate(step)));
  std::int64_t at = -1;
  AdamWPass pass;
  pass.count = count;
  pass.parameters = parameters.data() + offset, pass.gradient = gradient.data() + offset;
  pass.first = first.data() + offset, pass.second = second.data() + offset;
  if (with_copy) pass.rounded = rounded.data() + offset;
  if (with_count) pass.step = &at;
  SetAdamW(kSettings, &pass);
  for (std::int64_t step = 0; step < kSteps; ++step) {
    const std::vector<float> fresh = RandomElements<float>(count, static_cast<unsigned>(10 + step));
    std::copy(fresh.begin(), fresh.end(), pass.gradient);
    at = step;
    pass.rates = with_count ? rates.data() : &rates[step];
    const auto blocks =
        static_cast<unsigned>((count + kVector * kAdamWThreads - 1) / (kVector * kAdamWThreads));
    cuda_emulation::Launch({blocks}, {kAdamWThreads}, 0, AdamWKernel<kVector>, pass);
    const double t = static_cast<double>(step + 1), lr = LearningRate(step);
    for (std::int64_t i = 0; i < count; ++i) {
      p[i] *= 1 - lr * kSettings.weight_decay;
      m[i] = kSettings.beta1 * m[i] + (1 - kSettings.beta1) * fresh[i];
      v[i] = kSettings.beta2 * v[i] + (1 - kSettings.beta2) * double{fresh[i]} * fresh[i];
      const double corrected1 = m[i] / (1 - std::pow(kSettings.beta1, t)),
                   corrected2 = v[i] / (1 - std::pow(kSettings.beta2, t));
      p[i] -= lr * corrected1 / (std::sqrt(corrected2) + kSettings.epsilon);
    }
  }
  const auto tail = [&](const auto& all) { return std::vector(all.begin() + offset, all.end()); };
  ExpectClose(tail(parameters), p, "parameters", kTightly);
  ExpectClose(tail(first), m, "first moment", kTightly);
  ExpectClose(tail(second), v, "second moment", kTightly);
  for (const float left : gradient) EXPECT_EQ(left, 0);
  if (!with_copy) return;
  for (std::int64_t i = offset; i < count + offset; ++i)
    ASSERT_EQ(rounded[i].bits, ToBf16(parameters[i]).bits) << i;
}

TEST(AdamWCuda, FourAtATime) {
  ExpectSteps<4>(1024, 0, true, true);
  ExpectSteps<4>(2051, 0, true, true);  // the last vector is not full
  ExpectSteps<4>(3, 0, false, false);
}

TEST(AdamWCuda, OneAtATime) {
  ExpectSteps<1>(515, 1, true, false);
  ExpectSteps<1>(1, 0, false, true);
}

// The table of rates follows the formulas at every step.
TEST(AdamWCuda, Rates) {
  const AdamWRates first = AdamWRatesAt(kSettings, 0, 0.5);
  EXPECT_FLOAT_EQ(first.decay, 0.975f);
  EXPECT_FLOAT_EQ(first.size, 25);
  EXPECT_FLOAT_EQ(first.root_correction, std::sqrt(0.1f));
  const AdamWRates late = AdamWRatesAt(kSettings, 1000000, 0.5);
  EXPECT_FLOAT_EQ(late.size, 0.5f);
  EXPECT_FLOAT_EQ(late.root_correction, 1);
}

}  // namespace
}  // namespace pelab::trainer
