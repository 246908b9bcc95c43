// The attention kernels for CUDA, emulated, against the formula in double.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "tests/support/cuda_emulation.h"
#include "tests/unit/worker/trainer/kernels/attention/attention_fixture.h"
#include "tests/unit/worker/trainer/kernels/attention/attention_launch_fixture.h"
#include "worker/trainer/kernels/attention/attention.h"

namespace pelab::trainer::attention_cuda_test {
namespace {

using Options = AttentionOptions;

double Largest(const Doubles& values) {
  double largest = 0;
  for (const double x : values) largest = std::max(largest, std::abs(x));
  return largest;
}

// Expects differences of at most `tolerance` times the largest expected value, or times
// `least_size`.
void ExpectClose(const Doubles& got, const Doubles& expected, double tolerance,
                 const std::string& what, double least_size = 1e-3) {
  ASSERT_EQ(got.size(), expected.size()) << what;
  const double size = std::max(least_size, Largest(expected));
  double most = 0;
  std::size_t worst = 0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    const double error = std::abs(got[i] - expected[i]);
    if (!(error <= most)) {
      most = error;
      worst = i;
      if (std::isnan(error)) break;
    }
  }
  EXPECT_LE(most, tolerance * size) << what << " at " << worst << ": " << got[worst]
                                    << " instead of " << expected[worst] << ", of at most " << size;
}

constexpr double kFloatTolerance = 1e-5, kBf16Tolerance = 1e-2;

void ExpectClose(const AttentionResults& got, const AttentionResults& expected, double tolerance) {
  ExpectClose(got.out, expected.out, tolerance, "out");
  ExpectClose(got.log_sum_exp, expected.log_sum_exp, tolerance, "log-sum-exp");
  ExpectClose(got.value, expected.value, tolerance, "dv");
  ExpectClose(got.value_bias, expected.value_bias, tolerance, "value bias");
  // The gradient is zero if a query sees one key. The error is that of the canceling terms: D, a
  // sum of d products.
  const auto products = static_cast<double>(expected.out.size() / expected.log_sum_exp.size());
  const double size = Largest(expected.value) * std::max(1.0, std::sqrt(products / 8));
  ExpectClose(got.query, expected.query, tolerance, "dq", size);
  ExpectClose(got.key, expected.key, tolerance, "dk", size);
  ExpectClose(got.term, expected.term, tolerance, "term", size);
  const auto sum_size = [&](const Doubles& summed, const Doubles& sums) {
    return size * std::sqrt(static_cast<double>(summed.size()) / (sums.size() + 1e-9));
  };
  ExpectClose(got.diagonal, expected.diagonal, tolerance, "diagonal",
              sum_size(expected.log_sum_exp, {0}));
  ExpectClose(got.query_bias, expected.query_bias, tolerance, "query bias",
              sum_size(expected.query, expected.query_bias));
  // Zero without rotations: the softmax does not depend on it.
  ExpectClose(got.key_bias, expected.key_bias, tolerance, "key bias",
              sum_size(expected.key, expected.key_bias));
}

void ExpectRight(const Options& options, unsigned seed, bool bf16 = true) {
  SCOPED_TRACE(options.Text() + ", seed " + std::to_string(seed));
  {
    SCOPED_TRACE("float");
    AttentionCase<float> attention(options, seed);
    ASSERT_TRUE(AttentionFits(attention.problem()));
    ExpectClose(Emulated(&attention), attention.Reference(), kFloatTolerance);
  }
  if (!bf16) return;
  SCOPED_TRACE("bf16");
  AttentionCase<Bf16> attention(options, seed);
  ExpectClose(Emulated(&attention), attention.Reference(), kBf16Tolerance);
}

TEST(AttentionCuda, GivesTheFormula) { ExpectRight({}, 1); }

TEST(AttentionCuda, TakesEverySize) {
  for (const std::int64_t width : {1, 2, 6, 8, 16, 20, 32, 48, 64}) {
    Options options;
    options.width = options.value_width = width;
    options.keys = options.rows = 9;
    ExpectRight(options, 2);
  }
  for (const auto& [width, value_width] :
       {std::pair{32, 16}, {24, 8}, {128, 64}, {100, 40}, {16, 48}}) {
    Options options;
    options.batch = 1;
    options.width = width;
    options.value_width = value_width;
    options.keys = 11;
    options.rows = 10;
    ExpectRight(options, 3);
  }
}

TEST(AttentionCuda, TakesEveryLength) {
  for (const std::int64_t keys : {1, 2, 8, 31, 33, 64, 100, 128, 129, 200}) {
    for (const std::int64_t rows : {keys, std::int64_t{1}, (keys + 1) / 2}) {
      Options options;
      options.batch = 1;
      options.heads = keys < 40 ? 5 : 1;
      options.keys = keys;
      options.rows = rows;
      options.causal = true;
      options.diagonal = Options::kByHead;
      options.biases = true;
      ExpectRight(options, 4, false);
    }
  }
}

TEST(AttentionCuda, TakesLongSequences) {
  Options options;
  options.batch = options.heads = 1;
  options.keys = 515;
  options.rows = 300;
  options.width = 16;
  options.value_width = 8;
  options.dropout = 0.1;
  options.diagonal = Options::kShared;
  options.biases = options.lengths = true;
  ExpectRight(options, 5, false);
}

TEST(AttentionCuda, HasEveryOption) {
  const std::vector<std::pair<const char*, void (*)(Options*)>> changes = {
      {"one_projection", [](Options* o) { o->one_projection = true; }},
      {"padded_rows", [](Options* o) { o->padded_rows = true; }},
      {"biases", [](Options* o) { o->biases = true; }},
      {"turned", [](Options* o) { o->turned = true; }},
      {"turned_apart",
       [](Options* o) { o->turned = o->turned_apart = o->rotations_by_head = true; }},
      {"causal", [](Options* o) { o->causal = true; }},
      {"lengths", [](Options* o) { o->lengths = true; }},
      {"diagonal", [](Options* o) { o->diagonal = Options::kShared; }},
      {"diagonal_by_head", [](Options* o) { o->diagonal = Options::kByHead; }},
      {"slopes", [](Options* o) { o->slopes = true; }},
      {"term", [](Options* o) { o->term = Options::kWhole; }},
      {"repeated_term", [](Options* o) { o->term = Options::kRepeated; }},
      {"dropout", [](Options* o) { o->dropout = 0.3; }},
      {"keys_in_memory",
       [](Options* o) { o->dropout = 0.2, o->keys_in_memory = true, o->first = 77; }},
      {"skipped", [](Options* o) { o->dropout = 0.3, o->first = 77, o->skipped = 5; }},
  };
  for (const auto& [name, change] : changes) {
    Options options;
    options.keys = options.rows = 13;
    change(&options);
    ExpectRight(options, 6);
  }
}

TEST(AttentionCuda, CombinesOptions) {
  std::mt19937 random(7);
  for (unsigned seed = 0; seed < 150; ++seed) {
    ExpectRight(RandomAttentionOptions(&random), seed);
    if (HasFailure()) break;
  }
}

// The root of the mean squared difference, relative to that of the expected values.
double MeanError(const Doubles& got, const Doubles& expected) {
  double error = 0, size = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    error += (got[i] - expected[i]) * (got[i] - expected[i]);
    size += expected[i] * expected[i];
  }
  return std::sqrt(error / (size + 1e-30));
}

// Both kinds of kernels, if there are few enough keys for those that keep all logits.
void ExpectTensorRight(const Options& options, unsigned seed) {
  SCOPED_TRACE(options.Text() + ", seed " + std::to_string(seed));
  AttentionCase<Bf16> attention(options, seed);
  ASSERT_TRUE(AttentionUsesTensorCores(attention.problem(), attention.gradients()));
  const AttentionResults expected = attention.Reference();
  if (AttentionKeepsLogits(attention.problem())) {
    ExpectClose(EmulatedTensor(&attention), expected, kBf16Tolerance);
  }
  SCOPED_TRACE("streamed");
  AttentionCase<Bf16> again(options, seed);
  ExpectClose(EmulatedStreamed(&again), expected, kBf16Tolerance);
}

TEST(AttentionOnTensorCores, GivesTheFormula) {
  for (const auto& [width, value_width] : {std::pair{16, 16}, {32, 16}, {32, 32}, {64, 64}}) {
    for (const std::int64_t keys : {1, 16, 33, 64, 65, 100, 128}) {
      for (const std::int64_t rows : {keys, std::int64_t{1}, (keys + 1) / 2}) {
        Options options;
        options.batch = 1;
        options.heads = 2;
        options.width = width;
        options.value_width = value_width;
        options.keys = keys;
        options.rows = rows;
        ExpectTensorRight(options, 8);
      }
    }
  }
}

TEST(AttentionOnTensorCores, CombinesOptionsOfLongSequences) {
  std::mt19937 random(14);
  for (unsigned seed = 0; seed < 8; ++seed) {
    Options options = RandomTensorOptions(&random);
    options.batch = options.heads = 2;
    options.keys = 129 + random() % 200;
    options.rows = random() % 2 == 0 ? options.keys : 1 + random() % options.keys;
    options.one_projection = false;
    ExpectTensorRight(options, seed);
    if (HasFailure()) break;
  }
}

TEST(AttentionOnTensorCores, CombinesOptions) {
  std::mt19937 random(9);
  for (unsigned seed = 0; seed < 60; ++seed) {
    ExpectTensorRight(RandomTensorOptions(&random), seed);
    if (HasFailure()) break;
  }
}

// Backward reads what forward has stored: the keys of the stream do not matter to it.
TEST(AttentionOnTensorCores, BackwardDropsWhatForwardDropped) {
  for (const std::int64_t keys : {33, 64, 65, 128}) {
    Options options;
    options.batch = options.heads = 2;
    options.width = options.value_width = 16;
    options.keys = keys;
    options.rows = keys - 7;
    options.dropout = 0.3;
    options.causal = true;
    AttentionCase<Bf16> attention(options, 10), again(options, 10);
    const AttentionResults expected = EmulatedTensor(&attention);
    const AttentionResults got =
        again.RunOn([](const auto& problem) { LaunchTensorAttentionForward(problem, kLaunch); },
                    [](FusedAttention<Bf16> problem, const auto& gradients) {
                      problem.dropout.key0 ^= 1U;
                      LaunchTensorAttentionBackward(problem, gradients, kLaunch);
                    },
                    Sum);
    EXPECT_EQ(got.query, expected.query) << keys << " keys";
    EXPECT_EQ(got.key, expected.key) << keys << " keys";
    EXPECT_EQ(got.value, expected.value) << keys << " keys";
  }
}

// Expects mean errors below `most`.
void ExpectSmallErrors(const AttentionResults& got, const AttentionResults& expected,
                       double most = 0.01) {
  EXPECT_LT(MeanError(got.out, expected.out), most);
  EXPECT_LT(MeanError(got.log_sum_exp, expected.log_sum_exp), most);
  EXPECT_LT(MeanError(got.query, expected.query), most);
  EXPECT_LT(MeanError(got.key, expected.key), most);
  EXPECT_LT(MeanError(got.value, expected.value), most);
  EXPECT_LT(MeanError(got.query_bias, expected.query_bias), most);
  EXPECT_LT(MeanError(got.key_bias, expected.key_bias), most);
  EXPECT_LT(MeanError(got.value_bias, expected.value_bias), most);
  EXPECT_LT(MeanError(got.diagonal, expected.diagonal), most);
}

// A stricter bound than one that holds for every element of every problem.
TEST(AttentionOnTensorCores, RoundsAsBfloat16DoesOnAverage) {
  for (const auto& [width, value_width] : {std::pair{16, 16}, {32, 16}, {32, 32}, {64, 64}}) {
    for (const bool options_on : {false, true}) {
      Options options;
      options.batch = options.heads = 1;
      options.width = width;
      options.value_width = value_width;
      options.keys = options.rows = 112;
      if (options_on) {
        options.biases = options.turned = options.causal = options.slopes = true;
        options.diagonal = Options::kByHead;
        options.dropout = 0.1;
      }
      SCOPED_TRACE(options.Text());
      AttentionCase<Bf16> attention(options, 10);
      const AttentionResults got = EmulatedTensor(&attention);
      ExpectSmallErrors(got, attention.Reference());
      AttentionCase<Bf16> same(options, 10), streamed(options, 10);
      ExpectSmallErrors(got, Emulated(&same));
      ExpectSmallErrors(EmulatedStreamed(&streamed), attention.Reference());
    }
  }
}

// More keys than the kernels keep logits of: tiles and groups that are whole and that are not, and
// fewer queries than keys. Rounding the rotated queries and keys makes errors of up to 1.1 % here.
TEST(AttentionOnTensorCores, StreamsLongSequences) {
  for (const auto& [keys, rows] :
       {std::pair<std::int64_t, std::int64_t>{129, 129}, {192, 192}, {257, 257}, {300, 41}}) {
    for (const bool causal : {false, true}) {
      Options options;
      options.batch = options.heads = 1;
      options.keys = keys;
      options.rows = rows;
      options.causal = causal;
      options.biases = options.turned = true;
      options.diagonal = Options::kByHead;
      options.dropout = 0.1;
      SCOPED_TRACE(options.Text());
      AttentionCase<Bf16> attention(options, 13), plain(options, 13);
      const AttentionResults got = EmulatedStreamed(&attention);
      ExpectSmallErrors(got, attention.Reference(), 0.012);
      ExpectSmallErrors(got, Emulated(&plain), 0.012);
    }
  }
}

TEST(AttentionOnTensorCores, AreUsedWhereTheyFit) {
  const auto used = [](auto change) {
    Options options;
    change(&options);
    AttentionCase<Bf16> attention(options, 1);
    return AttentionUsesTensorCores(attention.problem(), attention.gradients());
  };
  EXPECT_TRUE(used([](Options*) {}));
  EXPECT_TRUE(used([](Options* o) { o->one_projection = true; }));
  EXPECT_FALSE(used([](Options* o) { o->padded_rows = true; }));
  EXPECT_FALSE(used([](Options* o) { o->width = o->value_width = 8; }));
  EXPECT_FALSE(used([](Options* o) { o->width = 64; }));
  EXPECT_TRUE(used([](Options* o) { o->rows = o->keys = 129; }));
  EXPECT_FALSE(used([](Options* o) { o->term = Options::kWhole; }));
  AttentionCase<float> attention(Options{}, 1);
  EXPECT_FALSE(AttentionUsesTensorCores(attention.problem()));
}

// Every way is right. If a block's shared memory is too small for the kernels that keep all logits,
// those that stream run, and then the plain ones.
TEST(AttentionOnTensorCores, GiveWayWhereMemoryIsShort) {
  Options options;
  options.batch = options.heads = 1;
  options.width = options.value_width = 64;
  options.rows = options.keys = 128;
  const AttentionCase<Bf16> made(options, 12);
  const std::size_t streamed = StreamedBackwardBytes(made.problem(), made.gradients());
  ASSERT_LT(streamed, TensorBackwardBytes(made.problem()));
  ASSERT_GE(streamed, TensorForwardBytes(made.problem()));
  for (const std::size_t most_shared : {std::size_t{0}, streamed, cuda_emulation::kMostShared}) {
    SCOPED_TRACE(most_shared);
    AttentionCase<Bf16> attention(options, 12);
    std::vector<std::size_t> shared;
    const auto launch = [&](dim3 grid, dim3 block, std::size_t bytes, auto kernel,
                            const auto&... x) {
      shared.push_back(bytes);
      cuda_emulation::Launch(grid, block, bytes, kernel, x...);
    };
    const AttentionResults got = attention.RunOn(
        [&](const auto& problem) { LaunchAttentionForward(problem, most_shared, launch); },
        [&](const auto& problem, const auto& gradients) {
          LaunchAttentionBackward(problem, gradients, most_shared, launch);
        },
        Sum);
    ExpectClose(got, attention.Reference(), kBf16Tolerance);
    ASSERT_EQ(shared.size(), 2u);
    EXPECT_EQ(shared[0] == TensorForwardBytes(attention.problem()), most_shared > 0);
    EXPECT_EQ(shared[1] == TensorBackwardBytes(attention.problem()), most_shared > streamed);
    EXPECT_EQ(shared[1] == streamed, most_shared == streamed);
  }
}

// The second time the threads run in another order, but the sums are the same.
TEST(AttentionCuda, RepeatsEveryBit) {
  Options options;
  options.rows = options.keys = 50;
  options.biases = options.turned = true;
  options.diagonal = Options::kByHead;
  options.dropout = 0.1;
  const auto expect_same = [](const AttentionResults& a, const AttentionResults& b) {
    EXPECT_EQ(a.out, b.out);
    EXPECT_EQ(a.query, b.query);
    EXPECT_EQ(a.key, b.key);
    EXPECT_EQ(a.value, b.value);
    EXPECT_EQ(a.query_bias, b.query_bias);
    EXPECT_EQ(a.key_bias, b.key_bias);
    EXPECT_EQ(a.value_bias, b.value_bias);
    EXPECT_EQ(a.diagonal, b.diagonal);
  };
  AttentionCase<float> attention(options, 11);
  expect_same(Emulated(&attention), Emulated(&attention));
  AttentionCase<Bf16> rounded(options, 11);
  expect_same(EmulatedTensor(&rounded), EmulatedTensor(&rounded));
  AttentionCase<Bf16> streamed(options, 11);
  expect_same(EmulatedStreamed(&streamed), EmulatedStreamed(&streamed));
}

TEST(AttentionCuda, KnowsWhatItTakes) {
  Options options;
  const AttentionCase<float> attention(options, 1);
  const auto fits = [&](auto change) {
    FusedAttention<float> problem = attention.problem();
    change(&problem);
    return AttentionFits(problem);
  };
  EXPECT_TRUE(fits([](auto*) {}));
  EXPECT_FALSE(fits([](auto* p) { p->width = 130; }));
  EXPECT_FALSE(fits([](auto* p) { p->value_width = 65; }));
  EXPECT_FALSE(fits([](auto* p) { p->rows = p->keys + 1; }));
  EXPECT_FALSE(fits([](auto* p) { p->keys = 2000; }));
  EXPECT_FALSE(fits([](auto* p) { p->batch = 0; }));
  EXPECT_TRUE(fits([](auto* p) { p->members.count = 2; }));
  EXPECT_FALSE(fits([](auto* p) { p->members.count = 3; }));
  EXPECT_FALSE(fits([](auto* p) {
    p->width = 15;
    p->query_rotations = p->query_bias = reinterpret_cast<const float*>(8);
  }));
  EXPECT_FALSE(fits([](auto* p) {
    p->batch = std::int64_t{1} << 29;
    p->dropout.threshold = 1;
  }));
}

}  // namespace
}  // namespace pelab::trainer::attention_cuda_test
