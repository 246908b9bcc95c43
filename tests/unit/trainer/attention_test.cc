// The attention kernel of the CPU against the plain path in LibTorch operations: outputs and all
// gradients.
#include "worker/trainer/model/attention.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "core/base/random.h"
#include "worker/trainer/model/attention_kernel.h"

namespace pelab::trainer {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

at::Tensor Normal(const std::string& name, at::IntArrayRef shape) {
  const at::Tensor x = at::empty(shape, at::TensorOptions().dtype(at::kFloat));
  CounterRandom random(7, "test/" + name);
  for (std::int64_t i = 0; i < x.numel(); ++i) {
    x.data_ptr<float>()[i] = static_cast<float>(random.Normal());
  }
  return x;
}

struct Case {
  std::string name;
  std::int64_t batch, rows, keys, heads, width;
  bool causal = false;
  bool padding = false;
  bool bias = false;
  double dropout = 0;
};

// Leaves of autograd, fresh for each path.
struct Leaves {
  explicit Leaves(const Case& c)
      : query(Normal("query", {c.batch, c.rows, c.heads, c.width}).set_requires_grad(true)),
        // As the decoder makes them: views into one projection, so that rows are not adjacent.
        key_value(
            Normal("key_value", {c.batch, c.keys, 2 * c.heads * c.width}).set_requires_grad(true)),
        bias(Normal("bias", {c.heads, c.rows, c.keys}).set_requires_grad(true)) {}
  at::Tensor query, key_value, bias;
};

AttentionInputs Inputs(const Case& c, const Leaves& leaves) {
  const auto half = [&](std::int64_t which) {
    return leaves.key_value.narrow(2, which * c.heads * c.width, c.heads * c.width)
        .view({c.batch, c.keys, c.heads, c.width});
  };
  at::Tensor term;
  if (c.bias) term = leaves.bias;
  if (c.causal) {
    const at::Tensor mask =
        at::full({c.keys, c.keys}, -kInfinity, leaves.query.options().requires_grad(false))
            .triu(1)
            .narrow(0, c.keys - c.rows, c.rows);
    term = term.defined() ? term + mask : mask.unsqueeze(0);
  }
  if (c.padding) {  // sequence b ends b positions early
    const at::Tensor mask =
        at::zeros({c.batch, 1, 1, c.keys}, at::TensorOptions().dtype(at::kFloat));
    for (std::int64_t b = 0; b < c.batch; ++b) {
      mask.select(0, b).narrow(2, c.keys - b, b).fill_(-kInfinity);
    }
    term = term.defined() ? term + mask : mask;
  }
  return {leaves.query, half(0), half(1), term};
}

class AttentionKernel : public testing::TestWithParam<Case> {};

TEST_P(AttentionKernel, AgreesWithThePlainPath) {
  const Case& c = GetParam();
  ModelConfig config;
  config.dropout = c.dropout;
  config.dropout_at[static_cast<int>(DropoutSite::kAttention)] = true;
  const Dropout dropout(config, 3, 11, at::Device(at::kCPU));
  const at::Tensor direction = Normal("direction", {c.batch, c.rows, c.heads * c.width});
  std::vector<at::Tensor> found[2];
  for (const bool kernel : {false, true}) {
    const Leaves leaves(c);
    const AttentionInputs inputs = Inputs(c, leaves);
    const at::Tensor out =
        kernel ? AttendByKernel(inputs, 1, &dropout) : AttendPlainly(inputs, 1, &dropout);
    ASSERT_EQ(out.sizes(), direction.sizes());
    (out * direction).sum().backward();
    found[kernel] = {out.detach(), leaves.query.grad(), leaves.key_value.grad()};
    if (c.bias) found[kernel].push_back(leaves.bias.grad());
  }
  for (std::size_t i = 0; i < found[0].size(); ++i) {
    EXPECT_TRUE(found[0][i].isfinite().all().item<bool>());
    EXPECT_LT((found[0][i] - found[1][i]).abs().max().item<float>(), 2e-5f)
        << (i == 0 ? "output" : "gradient " + std::to_string(i));
  }
}

TEST_P(AttentionKernel, IsWhatAttendTakesWithAndWithoutGradients) {
  const Case& c = GetParam();
  const Leaves leaves(c);
  const AttentionInputs inputs = Inputs(c, leaves);
  const at::Tensor trained = Attend(inputs, 0, nullptr);
  const at::NoGradGuard no_grad;
  EXPECT_TRUE(trained.equal(AttendByKernel(inputs, 0, nullptr)));
  EXPECT_TRUE(trained.equal(Attend(inputs, 0, nullptr)));
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, AttentionKernel,
    testing::Values(Case{"plain", 2, 32, 32, 4, 16}, Case{"causal", 3, 32, 32, 4, 16, true},
                    Case{"paper_size", 1, 128, 128, 16, 16, true, false, true, 0.1},
                    Case{"odd_sizes", 3, 13, 13, 3, 6, true, true, true},
                    Case{"one_row", 4, 1, 33, 2, 10, true, false, true, 0.25},
                    Case{"one_key", 2, 1, 1, 1, 1, true},
                    Case{"padding", 5, 17, 17, 2, 8, false, true},
                    Case{"bias", 2, 20, 20, 5, 4, false, false, true},
                    Case{"dropout", 2, 24, 24, 2, 32, true, true, false, 0.5},
                    Case{"wide_heads", 2, 9, 9, 1, 80, true, false, true}),
    [](const testing::TestParamInfo<Case>& info) { return info.param.name; });

// Softmax of logits that differ by more than a float's exponent can hold must neither overflow nor
// lose the largest.
TEST(AttentionKernelExtremes, LargeLogitsGiveTheValueOfTheLargest) {
  const at::Tensor query = at::full({1, 1, 1, 4}, 100.0f);
  at::Tensor key = at::full({1, 3, 1, 4}, -100.0f);
  key.select(1, 2).fill_(100.0f);
  const at::Tensor value = Normal("value", {1, 3, 1, 4});
  const at::Tensor out = AttendByKernel({query, key, value, {}}, 0, nullptr);
  EXPECT_TRUE(out.select(1, 0).equal(value.select(1, 2).flatten(1)));
}

TEST(AttentionKernelExtremes, SequencesThatDoNotFitTheKernelTakeThePlainPath) {
  const at::Tensor x = Normal("long", {1, kMostKernelKeys + 1, 1, 2});
  const AttentionInputs inputs{x, x, x, {}};
  EXPECT_TRUE(Attend(inputs, 0, nullptr).equal(AttendPlainly(inputs, 0, nullptr)));
  const AttentionInputs doubles{x.to(at::kDouble), x.to(at::kDouble), x.to(at::kDouble), {}};
  EXPECT_EQ(Attend(doubles, 0, nullptr).scalar_type(), at::kDouble);
}

}  // namespace
}  // namespace pelab::trainer
