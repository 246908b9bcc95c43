// The attention kernel of the CPU against the plain path in LibTorch operations: outputs and all
// gradients.
#include "worker/trainer/model/attention.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <gtest/gtest.h>

#include <cmath>
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
  std::int64_t value_width = 0;  // 0: as the queries'
  bool key_term = false;

  std::int64_t of_values() const { return value_width == 0 ? width : value_width; }
};

// Leaves of autograd, fresh for each path.
struct Leaves {
  explicit Leaves(const Case& c)
      : query(Normal("query", {c.batch, c.rows, c.heads, c.width}).set_requires_grad(true)),
        // As the decoder makes them: views into one projection, so that rows are not adjacent.
        key_value(Normal("key_value", {c.batch, c.keys, c.heads * (c.width + c.of_values())})
                      .set_requires_grad(true)),
        bias(Normal("bias", {c.heads, c.rows, c.keys}).set_requires_grad(true)),
        key_term(Normal("key_term", {c.rows, c.keys, c.width}).set_requires_grad(true)) {}
  at::Tensor query, key_value, bias, key_term;
};

AttentionInputs Inputs(const Case& c, const Leaves& leaves) {
  const at::Tensor key =
      leaves.key_value.narrow(2, 0, c.heads * c.width).view({c.batch, c.keys, c.heads, c.width});
  const at::Tensor value = leaves.key_value.narrow(2, c.heads * c.width, c.heads * c.of_values())
                               .view({c.batch, c.keys, c.heads, c.of_values()});
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
  return {leaves.query, key, value, term, c.key_term ? leaves.key_term : at::Tensor()};
}

class AttentionKernel : public testing::TestWithParam<Case> {};

TEST_P(AttentionKernel, AgreesWithThePlainPath) {
  const Case& c = GetParam();
  ModelConfig config;
  config.dropout = c.dropout;
  config.dropout_at[static_cast<int>(DropoutSite::kAttention)] = true;
  const Dropout dropout(config, 3, 11, at::Device(at::kCPU));
  const at::Tensor direction = Normal("direction", {c.batch, c.rows, c.heads * c.of_values()});
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
    if (c.key_term) found[kernel].push_back(leaves.key_term.grad());
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
                    Case{"wide_heads", 2, 9, 9, 1, 80, true, false, true},
                    Case{"narrow_values", 2, 33, 33, 4, 32, true, true, false, 0.1, 16},
                    Case{"wide_values", 3, 12, 12, 3, 5, false, true, true, 0, 21},
                    Case{"narrow_values_one_row", 4, 1, 20, 2, 24, true, false, false, 0, 8},
                    Case{"key_term", 3, 18, 18, 2, 8, true, true, false, 0.2, 0, true},
                    Case{"key_term_and_bias", 2, 7, 7, 3, 6, false, false, true, 0, 9, true},
                    Case{"key_term_one_row", 5, 1, 11, 2, 4, true, false, false, 0, 0, true}),
    [](const testing::TestParamInfo<Case>& info) { return info.param.name; });

// The terms of pairs in both paths against loops over their definition.
TEST(AttentionTerms, AreWhatTheirDefinitionSays) {
  const std::int64_t rows = 4, keys = 6, heads = 2, width = 3;
  AttentionInputs inputs{Normal("q", {2, rows, heads, width}), Normal("k", {2, keys, heads, width}),
                         Normal("v", {2, keys, heads, width})};
  inputs.key_term = Normal("a", {rows, keys, width});
  const auto expected = [&](const AttentionInputs& of) {
    const at::Tensor out = at::zeros({2, rows, heads, width});
    for (std::int64_t b = 0; b < 2; ++b) {
      for (std::int64_t h = 0; h < heads; ++h) {
        for (std::int64_t i = 0; i < rows; ++i) {
          std::vector<at::Tensor> logits, values;
          for (std::int64_t j = 0; j < keys; ++j) {
            logits.push_back((of.query[b][i][h] * (of.key[b][j][h] + of.key_term[i][j])).sum() /
                             std::sqrt(3.0));
            values.push_back(of.value_term.defined() ? of.value[b][j][h] + of.value_term[i][j]
                                                     : of.value[b][j][h]);
          }
          out[b][i][h].copy_(at::matmul(at::softmax(at::stack(logits), 0), at::stack(values)));
        }
      }
    }
    return out.flatten(2);
  };
  const at::Tensor of_keys = expected(inputs);
  EXPECT_LT((AttendPlainly(inputs, 0, nullptr) - of_keys).abs().max().item<float>(), 1e-5f);
  EXPECT_LT((AttendByKernel(inputs, 0, nullptr) - of_keys).abs().max().item<float>(), 1e-5f);
  inputs.value_term = Normal("w", {rows, keys, width});
  const at::Tensor of_both = expected(inputs);
  EXPECT_LT((Attend(inputs, 0, nullptr) - of_both).abs().max().item<float>(), 1e-5f);
  EXPECT_GT((of_both - of_keys).abs().max().item<float>(), 1e-2f);
}

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
