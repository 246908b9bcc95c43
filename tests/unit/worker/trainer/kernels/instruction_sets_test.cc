// The CPU kernels with each instruction set of this processor: all give what the baseline gives,
// except for rounding.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "tests/unit/worker/trainer/kernels/activation/bias_activation_fixture.h"
#include "tests/unit/worker/trainer/kernels/attention/attention_fixture.h"
#include "tests/unit/worker/trainer/kernels/norm/residual_norm_fixture.h"
#include "tests/unit/worker/trainer/kernels/norm/rms_norm_fixture.h"
#include "worker/trainer/kernels/attention/attention_cpu.h"
#include "worker/trainer/kernels/vectors.h"

namespace pelab::trainer {
namespace {

class InstructionSets : public ::testing::Test {
 protected:
  ~InstructionSets() override { ChosenInstructionSet() = WidestInstructionSet(); }

  // Expects that what `run` returns with each set is what it returns with the baseline.
  template <class Run>
  static void ExpectAsBaseline(const Run& run) {
    ChosenInstructionSet() = InstructionSet::kBaseline;
    const auto expected = run();
    for (const InstructionSet set : {InstructionSet::kAvx2, InstructionSet::kAvx512}) {
      if (set > WidestInstructionSet()) continue;
      SCOPED_TRACE(set == InstructionSet::kAvx2 ? "AVX2" : "AVX-512");
      ChosenInstructionSet() = set;
      const auto found = run();
      ASSERT_EQ(found.size(), expected.size());
      for (std::size_t i = 0; i < found.size(); ++i) ExpectNear(found[i], expected[i], i);
    }
  }

 private:
  template <class Element>
  static void ExpectNear(const std::vector<Element>& found, const std::vector<Element>& expected,
                         std::size_t result) {
    ASSERT_EQ(found.size(), expected.size());
    double difference = 0, size = 0;
    for (std::size_t i = 0; i < found.size(); ++i) {
      ASSERT_EQ(std::isnan(found[i]), std::isnan(expected[i])) << "result " << result;
      if (std::isnan(found[i])) continue;  // not written
      difference += std::pow(double{found[i]} - double{expected[i]}, 2);
      size += std::pow(double{expected[i]}, 2);
    }
    EXPECT_LE(std::sqrt(difference), 2e-6 * std::sqrt(size)) << "result " << result;
  }
};

TEST_F(InstructionSets, AttentionIsTheSame) {
  const auto sum = [](const float* partial, std::int64_t members, std::int64_t rows,
                      std::int64_t columns, float* sums) {
    std::fill_n(sums, members * columns, 0.0f);
    for (std::int64_t i = 0; i < members * rows * columns; ++i) {
      sums[i / (rows * columns) * columns + i % columns] += partial[i];
    }
  };
  std::mt19937 random(11);
  for (unsigned seed = 0; seed < 60; ++seed) {
    AttentionOptions options = RandomAttentionOptions(&random);
    if (options.one_projection) options.biases = false;  // their sums are contiguous on the CPU
    SCOPED_TRACE(options.Text());
    ExpectAsBaseline([&] {
      AttentionCase<float> attention(options, seed);
      const AttentionResults r = attention.RunOn(
          [](const auto& p) { AttentionForward(p, 0, p.batch * p.heads); },
          [](const auto& p, const auto& g) { AttentionBackward(p, g, 0, p.batch * p.heads); }, sum);
      // Not the gradient of the key bias: without rotations it is zero but for rounding.
      return std::vector{r.out,        r.log_sum_exp, r.query,    r.key, r.value,
                         r.query_bias, r.value_bias,  r.diagonal, r.term};
    });
  }
}

TEST_F(InstructionSets, ResidualAndNormAreTheSame) {
  for (int bits = 0; bits < 16; ++bits) {
    SCOPED_TRACE(bits);
    ResidualNormOptions options;
    options.width = 48;
    options.residual = bits & 1, options.bias = bits & 2, options.norm = bits & 4,
    options.dropout = bits & 8;
    ExpectAsBaseline([&] {
      ResidualNormCase<float> one(options);
      ResidualNormForward(one.p, 0, NormBlocks(options.rows));
      ResidualNormBackward(one.p, one.g, 0, NormBlocks(options.rows));
      return std::vector{one.sum,         one.normed,     one.mean,   one.inverse,
                         one.to_residual, one.to_product, one.partial};
    });
  }
}

TEST_F(InstructionSets, RmsNormsAreTheSame) {
  ExpectAsBaseline([&] {
    RmsNormCase<float> one({.rows = kNormBlockRows + 3, .width = 48, .after = 48});
    RmsNormForward(one.p, 0, NormBlocks(one.o.rows));
    RmsNormBackward(one.p, one.g, 0, NormBlocks(one.o.rows));
    one.ExpectForward();
    one.ExpectBackward();
    return std::vector{one.normed, one.inverse, one.partial};
  });
}

TEST_F(InstructionSets, ActivationsAreTheSame) {
  for (int bits = 0; bits < 4; ++bits) {
    SCOPED_TRACE(bits);
    const BiasActivationOptions options = {.rows = 2 * kNormBlockRows + 3,
                                           .width = 48,
                                           .gelu = (bits & 1) != 0,
                                           .dropout = (bits & 2) != 0};
    ExpectAsBaseline([&] {
      BiasActivationCase<float> one(options);
      BiasActivationForward(one.p, 0, NormBlocks(options.rows));
      BiasActivationBackward(one.p, one.g, 0, NormBlocks(options.rows));
      return std::vector{one.out, one.to_product, one.partial};
    });
  }
}

}  // namespace
}  // namespace pelab::trainer
