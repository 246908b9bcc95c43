// The attention kernels of TestDevice() against the plain path in LibTorch operations: outputs and
// all gradients.
#include "worker/trainer/model/attention.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "tests/unit/worker/trainer/random_tensor_fixture.h"
#include "worker/trainer/kernels/attention/attention_cpu.h"

namespace pelab::trainer {
namespace {

struct Case {
  std::string name;
  std::int64_t batch, rows, keys, heads, width;
  bool causal = false;
  bool padding = false;
  std::int64_t distances = 0;  // heads of the bias by distance: 0, 1 or all
  double dropout = 0;
  std::int64_t value_width = 0;  // 0: that of the queries
  bool key_distance = false;
  bool biases = false;
  std::int64_t rotations = 0;  // heads of the rotations: 0, 1 or all
  std::int64_t packed = 0;     // parts of a common product: 0, 2 (keys and values) or 3
  std::int64_t skipped = 0;    // positions of padding that are left out

  std::int64_t of_values() const { return value_width == 0 ? width : value_width; }
};

// The tensors with gradients, by name; the same values in every type. The operands of products are
// rounded to `operands` before.
std::map<std::string, at::Tensor> Leaves(const Case& c, at::ScalarType type,
                                         at::ScalarType operands = at::kFloat) {
  std::map<std::string, at::Tensor> leaves;
  const auto add = [&](const std::string& name, at::IntArrayRef shape) {
    at::Tensor leaf = RandomTensor(name, shape);
    const bool is_operand = name == "packed" || name == "query" || name == "key_value";
    if (is_operand) leaf = leaf.to(operands);
    const bool wide = type == at::kBFloat16 && !is_operand;
    leaves[name] = leaf.to(wide ? at::kFloat : type).set_requires_grad(true);
  };
  if (c.packed > 0) add("packed", {c.batch, c.keys, c.packed, c.heads, c.width});
  if (c.packed < 3) add("query", {c.batch, c.rows, c.heads, c.width});
  if (c.packed == 0) {
    // As in the decoder: views into one projection, so that rows are not adjacent.
    add("key_value", {c.batch, c.keys, c.heads * (c.width + c.of_values())});
  }
  if (c.biases) {
    add("query_bias", {c.heads * c.width});
    add("key_bias", {c.heads * c.width});
    add("value_bias", {c.heads * c.of_values()});
  }
  if (c.distances > 0) add("distances", {c.distances, 2 * c.keys - 1});
  if (c.key_distance) add("key_distance", {2 * c.keys - 1, c.width});
  return leaves;
}

// Random complex numbers: rotations that also scale.
at::Tensor RandomRotations(const std::string& name, const Case& c, at::ScalarType type) {
  const at::Tensor parts = RandomTensor(name, {c.keys + 3, c.rotations, c.width / 2, 2});
  return at::view_as_complex(parts.to(type == at::kBFloat16 ? at::kFloat : type).contiguous());
}

AttentionInputs Inputs(const Case& c, const std::map<std::string, at::Tensor>& leaves) {
  const auto leaf = [&](const std::string& name) {
    const auto at = leaves.find(name);
    return at == leaves.end() ? at::Tensor() : at->second;
  };
  AttentionInputs inputs;
  inputs.query = leaf("query");
  if (c.packed > 0) {
    const at::Tensor packed = leaf("packed");
    (c.packed == 3 ? inputs.packed : inputs.packed_key_value) = packed;
    if (c.packed == 3) inputs.query = packed.select(2, 0);
    inputs.key = packed.select(2, c.packed - 2);
    inputs.value = packed.select(2, c.packed - 1);
  } else {
    const at::Tensor both = leaf("key_value");
    inputs.key = both.narrow(2, 0, c.heads * c.width).view({c.batch, c.keys, c.heads, c.width});
    inputs.value = both.narrow(2, c.heads * c.width, c.heads * c.of_values())
                       .view({c.batch, c.keys, c.heads, c.of_values()});
  }
  inputs.query_bias = leaf("query_bias");
  inputs.key_bias = leaf("key_bias");
  inputs.value_bias = leaf("value_bias");
  inputs.distance_bias = leaf("distances");
  inputs.key_distance = leaf("key_distance");
  if (c.rotations > 0) {
    inputs.query_rotations = RandomRotations("query_turns", c, inputs.query.scalar_type());
    inputs.key_rotations = RandomRotations("key_turns", c, inputs.query.scalar_type());
  }
  inputs.causal = c.causal;
  if (c.padding) {  // sequence b ends b positions early
    inputs.lengths = (c.keys - at::arange(c.batch, at::TensorOptions().dtype(at::kLong)))
                         .clamp_min(1)
                         .to(TestDevice());
  }
  return inputs;
}

class AttentionKernel : public testing::TestWithParam<Case> {};

// Expects that what Attend computes in `type` agrees with the plain path in 64 bits: outputs and
// gradients.
void ExpectAgreement(const Case& c, at::ScalarType type, double most_error) {
  ModelConfig config;
  config.dropout = c.dropout;
  config.dropout_at[static_cast<int>(DropoutSite::kAttention)] = true;
  const Dropout step(config, 3, 11);
  const Dropout dropout = step.From(2).Trimmed(c.keys, c.keys + c.skipped);
  const at::Tensor direction =
      RandomTensor("direction", {c.batch, c.rows, c.heads * c.of_values()}).to(type);
  std::map<std::string, at::Tensor> found[2];
  for (const bool tried : {false, true}) {
    const auto leaves = Leaves(c, tried ? type : at::kDouble, type);
    const AttentionInputs inputs = Inputs(c, leaves);
    const at::Tensor out = tried ? Attend(inputs, 1, &dropout) : AttendPlainly(inputs, 1, &dropout);
    ASSERT_EQ(out.sizes(), direction.sizes());
    (out * direction.to(out.scalar_type())).sum().backward();
    found[tried]["output"] = out.detach();
    for (const auto& [name, leaf] : leaves) found[tried]["gradient of " + name] = leaf.grad();
  }
  for (const auto& [name, expected] : found[0]) {
    if (name == "gradient of key_bias" && c.rotations == 0) {
      // The true gradient is 0, because a bias of the keys shifts all logits of a row equally.
      EXPECT_LT(found[1][name].norm().item<double>(),
                most_error * found[0]["gradient of query_bias"].norm().item<double>());
    } else if (expected.norm().item<double>() < 1e-12) {  // one key: its logit changes nothing
      EXPECT_LT(found[1][name].norm().item<double>(), most_error) << name;
    } else {
      EXPECT_LT(RelativeError(found[1][name], expected), most_error) << name;
    }
  }
}

TEST_P(AttentionKernel, AgreesWithThePlainPath) {
  ExpectAgreement(GetParam(), at::kFloat, kMostFloatError);
}

// The kernels of a GPU round the operands of products. The plain path, which a CPU takes in 16
// bits, also rounds logits and sums.
TEST_P(AttentionKernel, AgreesInSixteenBits) {
  const Case& c = GetParam();
  const bool fused = !TestDevice().is_cpu() && c.of_values() <= kMostAttentionValueWidth;
  EXPECT_EQ(FusedAttentionFits(Inputs(c, Leaves(c, at::kBFloat16))), fused);
  ExpectAgreement(c, at::kBFloat16, fused ? 0.02 : 0.1);
}

// A GPU leaves wider values to the plain path.
TEST_P(AttentionKernel, IsWhatAttendTakesWithAndWithoutGradients) {
  const Case& c = GetParam();
  const AttentionInputs inputs = Inputs(c, Leaves(c, at::kFloat));
  const bool fused = TestDevice().is_cpu() || c.of_values() <= kMostAttentionValueWidth;
  const at::Tensor trained = Attend(inputs, 0, nullptr);
  const at::NoGradGuard no_grad;
  EXPECT_EQ(FusedAttentionFits(inputs), fused);
  EXPECT_TRUE(
      trained.equal(fused ? AttendFused(inputs, 0, nullptr) : AttendPlainly(inputs, 0, nullptr)));
  EXPECT_TRUE(trained.equal(Attend(inputs, 0, nullptr)));
}

// As for variants of one sequence: every tensor is repeated without a copy.
TEST(AttentionKernelViews, RepeatedSequencesAreReadThroughTheirStrides) {
  const at::NoGradGuard no_grad;
  const Case c{"one", 1, 9, 9, 2, 8, true, false, 2};
  AttentionInputs one = Inputs(c, Leaves(c, at::kFloat));
  one.lengths = at::full({1}, 5, at::TensorOptions().dtype(at::kLong)).to(TestDevice());
  AttentionInputs many = one;
  for (at::Tensor* x : {&many.query, &many.key, &many.value}) *x = x->expand({4, -1, -1, -1});
  many.lengths = one.lengths.expand({4});
  many.distance_bias = at::stack({one.distance_bias, one.distance_bias}, 2).select(2, 0);
  ASSERT_FALSE(many.distance_bias.is_contiguous());
  const at::Tensor expected = AttendFused(one, 0, nullptr);
  EXPECT_TRUE(AttendFused(many, 0, nullptr).equal(expected.expand({4, -1, -1})));
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, AttentionKernel,
    testing::Values(
        Case{"plain", 2, 32, 32, 4, 16}, Case{"causal", 3, 32, 32, 4, 16, true},
        Case{"paper_size", 1, 128, 128, 16, 16, true, false, 16, 0.1, 0, false, true, 1, 3},
        Case{"paper_size_padded", 5, 128, 128, 2, 16, true, true, 1, 0.1},
        Case{"wide_tensor_heads", 2, 100, 100, 2, 64, false, true, 2, 0.1, 0, false, true},
        Case{"long", 2, 200, 200, 2, 16, true, true, 2, 0.1, 0, false, true, 1, 3},
        Case{"long_wide", 1, 150, 150, 2, 64, false, true, 1, 0.1},
        Case{"long_last_rows", 2, 40, 170, 2, 32, true, true, 0, 0.1, 16, false, true},
        Case{"odd_sizes", 3, 13, 13, 3, 6, true, true, 3},
        Case{"one_row", 4, 1, 33, 2, 10, true, false, 2, 0.25, 0, false, true, 1},
        Case{"last_rows", 3, 5, 29, 2, 16, true, true, 1, 0.25, 0, false, true, 2},
        Case{"one_key", 2, 1, 1, 1, 1, true}, Case{"padding", 5, 17, 17, 2, 8, false, true},
        Case{"much_padding", 40, 64, 64, 2, 8, false, true},
        Case{"distances", 2, 20, 20, 5, 4, false, false, 5},
        Case{"shared_distances", 3, 21, 21, 2, 4, false, false, 1},
        Case{"dropout", 2, 24, 24, 2, 32, true, true, 0, 0.5},
        Case{"wide_heads", 2, 9, 9, 1, 80, true, false, 1, 0, 0, false, true, 1},
        Case{"narrow_values", 2, 33, 33, 4, 32, true, true, 0, 0.1, 16},
        Case{"wide_values", 3, 12, 12, 3, 5, false, true, 3, 0, 21, false, true},
        Case{"narrow_values_one_row", 4, 1, 20, 2, 24, true, false, 0, 0, 8},
        Case{"turns", 2, 40, 40, 3, 22, false, false, 0, 0, 0, false, false, 1},
        Case{"turns_by_head", 2, 19, 19, 3, 16, true, false, 0, 0.2, 0, false, true, 3, 3},
        Case{"packed_biases", 3, 11, 11, 2, 8, false, true, 2, 0, 0, false, true, 0, 3},
        Case{"packed_key_value", 3, 5, 11, 2, 8, true, true, 1, 0.1, 0, false, true, 1, 2},
        Case{"key_distance", 3, 18, 18, 2, 8, true, true, 0, 0.2, 0, true},
        Case{"key_distance_and_biases", 2, 7, 7, 3, 6, false, false, 3, 0, 9, true, true},
        Case{"key_distance_one_row", 5, 1, 11, 2, 4, true, false, 0, 0, 0, true},
        Case{"without_padding", 5, 14, 14, 3, 8, false, true, 1, 0.2, 0, true, true, 1, 0, 5},
        Case{"without_padding_causal", 3, 21, 21, 2, 16, true, true, 0, 0.2, 0, false, true, 0, 3,
             11}),
    [](const testing::TestParamInfo<Case>& info) { return info.param.name; });

// One output by loops over the definition, for batch `b`, head `h` and row `i`.
at::Tensor ByDefinition(const Case& c, const AttentionInputs& in, std::int64_t b, std::int64_t h,
                        std::int64_t i) {
  const auto turned = [&](const at::Tensor& x, const at::Tensor& bias, const at::Tensor& rotations,
                          std::int64_t position) {
    at::Tensor y = bias.defined() ? x + bias.narrow(0, h * c.width, c.width) : x.clone();
    for (std::int64_t t = 0; rotations.defined() && t < c.width / 2; ++t) {
      const at::Tensor by = at::view_as_real(rotations)[position][c.rotations > 1 ? h : 0][t];
      const double re = by[0].item<double>(), im = by[1].item<double>();
      const double even = y[2 * t].item<double>(), odd = y[2 * t + 1].item<double>();
      y[2 * t] = even * re - odd * im;
      y[2 * t + 1] = even * im + odd * re;
    }
    return y;
  };
  const std::int64_t position = i + c.keys - c.rows;
  const at::Tensor query = turned(in.query[b][i][h], in.query_bias, in.query_rotations, position);
  std::vector<at::Tensor> logits, values;
  for (std::int64_t j = 0; j < c.keys; ++j) {
    if (c.causal && j > position) continue;
    if (in.lengths.defined() && j >= in.lengths[b].item<std::int64_t>()) continue;
    at::Tensor key = turned(in.key[b][j][h], in.key_bias, in.key_rotations, j);
    if (in.key_distance.defined()) key = key + in.key_distance[j - position + c.keys - 1];
    at::Tensor logit = (query * key).sum() / std::sqrt(static_cast<double>(c.width));
    if (in.distance_bias.defined()) {
      logit = logit + in.distance_bias[c.distances > 1 ? h : 0][j - position + c.keys - 1];
    }
    logits.push_back(logit);
    at::Tensor value = in.value[b][j][h];
    if (in.value_bias.defined()) {
      value = value + in.value_bias.narrow(0, h * c.of_values(), c.of_values());
    }
    values.push_back(
        in.value_distance.defined() ? value + in.value_distance[j - position + c.keys - 1] : value);
  }
  return at::matmul(at::softmax(at::stack(logits), 0), at::stack(values));
}

TEST(AttentionDefinition, IsWhatBothPathsCompute) {
  const at::NoGradGuard no_grad;
  for (const Case& c : {Case{"all", 2, 4, 6, 2, 6, true, true, 2, 0, 3, true, true, 2},
                        Case{"other", 3, 5, 5, 2, 4, false, true, 1, 0, 0, false, true, 1}}) {
    for (const bool with_value_distance : {false, true}) {
      AttentionInputs inputs = Inputs(c, Leaves(c, at::kDouble));
      if (with_value_distance) {
        inputs.value_distance = RandomTensor("w", {2 * c.keys - 1, c.of_values()}).to(at::kDouble);
      }
      const at::Tensor plain =
          AttendPlainly(inputs, 0, nullptr).view({c.batch, c.rows, c.heads, -1});
      AttentionInputs floats = Inputs(c, Leaves(c, at::kFloat));
      if (with_value_distance) floats.value_distance = inputs.value_distance.to(at::kFloat);
      const at::Tensor quick = Attend(floats, 0, nullptr).view({c.batch, c.rows, c.heads, -1});
      for (std::int64_t b = 0; b < c.batch; ++b) {
        for (std::int64_t i = 0; i < c.rows; ++i) {
          for (std::int64_t h = 0; h < c.heads; ++h) {
            const at::Tensor expected = ByDefinition(c, inputs, b, h, i);
            EXPECT_LT(RelativeError(plain[b][i][h], expected), 1e-12);
            EXPECT_LT(RelativeError(quick[b][i][h], expected), 1e-5);
          }
        }
      }
    }
  }
}

// If logits differ by more than a float's exponent can hold, the softmax must neither overflow nor
// lose the largest one.
TEST(AttentionKernelExtremes, LargeLogitsGiveTheValueOfTheLargest) {
  const at::Tensor query = at::full({1, 1, 1, 4}, 100.0f, at::TensorOptions(TestDevice()));
  at::Tensor key = at::full({1, 3, 1, 4}, -100.0f, at::TensorOptions(TestDevice()));
  key.select(1, 2).fill_(100.0f);
  const at::Tensor value = RandomTensor("value", {1, 3, 1, 4});
  const at::Tensor out = AttendFused({query, key, value}, 0, nullptr);
  EXPECT_TRUE(out.select(1, 0).equal(value.select(1, 2).flatten(1)));
}

TEST(AttentionKernelExtremes, SequencesThatDoNotFitTheKernelTakeThePlainPath) {
  const at::Tensor x = RandomTensor("long", {1, kMostCpuAttentionKeys + 1, 1, 2});
  const AttentionInputs inputs{x, x, x};
  EXPECT_TRUE(Attend(inputs, 0, nullptr).equal(AttendPlainly(inputs, 0, nullptr)));
  const AttentionInputs doubles{x.to(at::kDouble), x.to(at::kDouble), x.to(at::kDouble)};
  EXPECT_EQ(Attend(doubles, 0, nullptr).scalar_type(), at::kDouble);
}

}  // namespace
}  // namespace pelab::trainer
