// The fused passes between matrix products, against the same formulas in LibTorch operations and
// 64-bit floats: outputs and all gradients, on random shapes.
#include "worker/trainer/model/fused_layers.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/base/random.h"
#include "tests/unit/worker/trainer/fused_fixture.h"
#include "tests/unit/worker/trainer/random_tensor_fixture.h"

namespace pelab::trainer {
namespace {

ModelConfig DropoutEverywhere(double p) {
  ModelConfig config;
  config.dropout = p;
  for (bool& site : config.dropout_at) site = true;
  return config;
}

TEST(FusedLayers, ResidualAndNormAgreeWithThePlainWay) {
  CounterRandom random(5, "test/shapes");
  for (int trial = 0; trial < 24; ++trial) {
    const std::int64_t examples = 1 + random.Below(5), length = 1 + random.Below(70);
    const std::int64_t width = 16 * (1 + random.Below(20));
    const bool with_bias = random.Below(4) != 0, with_norm = random.Below(4) != 0;
    const ModelConfig config = DropoutEverywhere(random.Below(3) == 0 ? 0 : 0.3);
    const Dropout step(config, 3, trial);
    const std::int64_t skipped = random.Below(2) == 0 ? 0 : random.Below(9);
    const Dropout part = step.From(random.Below(3)).Trimmed(length, length + skipped);
    const DropoutPlace place{random.Below(4) == 0 ? nullptr : &part, 2, DropoutSite::kFfn};
    std::vector<at::Tensor> values = {RandomTensor("x", {examples, length, width}) * 3 + 1,
                                      RandomTensor("product", {examples, length, width})};
    if (with_bias) values.push_back(RandomTensor("bias", {width}));
    if (with_norm) {
      values.push_back(RandomTensor("gamma", {width}));
      values.push_back(RandomTensor("beta", {width}));
    }
    const auto by = [&](const auto& function) {
      return [&](const std::vector<at::Tensor>& leaves) -> std::vector<at::Tensor> {
        const std::size_t at = with_bias ? 3 : 2;
        NormWeights norm;
        if (with_norm) norm = {leaves[at], leaves[at + 1], 1e-5};
        const Residual out = function(leaves[0], leaves[1], with_bias ? leaves[2] : at::Tensor(),
                                      with_norm ? &norm : nullptr, place);
        EXPECT_EQ(out.normed.defined(), with_norm);
        if (with_norm) return {out.x, out.normed};
        return {out.x};
      };
    };
    ExpectFusedAsPlain(values, by(AddProduct), by(AddProductPlainly),
                       "trial " + std::to_string(trial));
  }
}

// Only one of the two outputs reaches the loss.
TEST(FusedLayers, EitherOutputMayGoUnused) {
  const std::vector<at::Tensor> values = {RandomTensor("x", {2, 5, 32}),
                                          RandomTensor("product", {2, 5, 32}),
                                          RandomTensor("gamma", {32}), RandomTensor("beta", {32})};
  for (const bool use_norm : {false, true}) {
    const auto by = [&](const auto& function) {
      return [&](const std::vector<at::Tensor>& leaves) -> std::vector<at::Tensor> {
        const NormWeights norm{leaves[2], leaves[3], 1e-5};
        const Residual out = function(leaves[0], leaves[1], at::Tensor(), &norm, DropoutPlace{});
        if (use_norm) return {out.normed};
        return {out.x + 0 * (leaves[2].sum() + leaves[3].sum())};
      };
    };
    if (use_norm) {
      ExpectFusedAsPlain(values, by(AddProduct), by(AddProductPlainly), "norm alone");
    } else {
      const auto leaves = LeavesOf(values, at::kFloat);
      by(AddProduct)(leaves)[0].sum().backward();
      EXPECT_TRUE(leaves[0].grad().equal(at::ones_like(leaves[0])));
      EXPECT_TRUE(leaves[1].grad().equal(at::ones_like(leaves[1])));
    }
  }
}

TEST(FusedLayers, ANormAloneAgreesWithThePlainWay) {
  for (const std::int64_t width : {16, 48, 256}) {
    const std::vector<at::Tensor> values = {RandomTensor("x", {3, 33, width}) * 2 + 1,
                                            RandomTensor("gamma", {width}),
                                            RandomTensor("beta", {width})};
    const auto by = [](const auto& function) {
      return [&](const std::vector<at::Tensor>& leaves) -> std::vector<at::Tensor> {
        return {function(leaves[0], NormWeights{leaves[1], leaves[2], 1e-5})};
      };
    };
    ExpectFusedAsPlain(values, by(Norm), by(NormPlainly), "width " + std::to_string(width));
  }
}

TEST(FusedLayers, VariantsThatShareAStreamAgreeWithThePlainWay) {
  const at::NoGradGuard no_grad;
  for (const std::int64_t variants : {1, 3}) {
    const at::Tensor x = RandomTensor("x", {2, 35, 48}) * 2,
                     contributions = RandomTensor("contributions", {2 * variants, 35, 48});
    const at::Tensor gamma = RandomTensor("gamma", {48}), beta = RandomTensor("beta", {48});
    const Residual found = TakeAway(x, contributions, NormWeights{gamma, beta, 1e-5});
    const auto wide = [](const at::Tensor& of) { return of.to(at::kDouble); };
    const Residual exact =
        TakeAwayPlainly(wide(x), wide(contributions), NormWeights{wide(gamma), wide(beta), 1e-5});
    EXPECT_LT(RelativeError(found.x, exact.x), kMostFloatError);
    EXPECT_LT(RelativeError(found.normed, exact.normed), kMostFloatError);
    EXPECT_LT(LargestDifference(exact.x.narrow(0, 2 * (variants - 1), 2),
                                wide(x) - wide(contributions.narrow(0, 2 * (variants - 1), 2))),
              1e-15)
        << "the last variant of both examples";
  }
}

TEST(FusedLayers, ActivationsAgreeWithThePlainWay) {
  CounterRandom random(6, "test/shapes");
  for (int trial = 0; trial < 24; ++trial) {
    const std::int64_t examples = 1 + random.Below(4), length = 1 + random.Below(80);
    const std::int64_t width = 16 * (1 + random.Below(30));
    const Activation activation = random.Below(2) == 0 ? Activation::kRelu : Activation::kGelu;
    const ModelConfig config = DropoutEverywhere(random.Below(3) == 0 ? 0 : 0.2);
    const Dropout step(config, 4, trial);
    const Dropout part = step.Trimmed(length, length + random.Below(5));
    const DropoutPlace place{random.Below(4) == 0 ? nullptr : &part, 1, DropoutSite::kFfnInner};
    const std::vector<at::Tensor> values = {RandomTensor("product", {examples, length, width}) * 2,
                                            RandomTensor("bias", {width})};
    const auto by = [&](const auto& function) {
      return [&](const std::vector<at::Tensor>& leaves) -> std::vector<at::Tensor> {
        return {function(leaves[0], leaves[1], activation, place)};
      };
    };
    ExpectFusedAsPlain(values, by(BiasActivate), by(BiasActivatePlainly),
                       "trial " + std::to_string(trial));
  }
}

// Wide layers use the kernel, not the plain way: on a CPU the two differ in the last bits. On a GPU
// both call CUDA's own functions and are the same.
TEST(FusedLayers, NarrowWidthsTakeThePlainWay) {
  const at::Tensor product = RandomTensor("product", {2, 3, 24}), bias = RandomTensor("bias", {24});
  EXPECT_TRUE(BiasActivate(product, bias, Activation::kGelu, {})
                  .equal(BiasActivatePlainly(product, bias, Activation::kGelu, {})));
  if (!TestDevice().is_cpu()) return;
  const at::Tensor wide = RandomTensor("product", {2, 300, 32}), other = RandomTensor("bias", {32});
  EXPECT_FALSE(BiasActivate(wide, other, Activation::kGelu, {})
                   .equal(BiasActivatePlainly(wide, other, Activation::kGelu, {})));
}

TEST(FusedLayers, DoNotDependOnHowManyThreadsThereAre) {
  const std::vector<at::Tensor> values = {
      RandomTensor("x", {8, 100, 64}), RandomTensor("product", {8, 100, 64}),
      RandomTensor("bias", {64}), RandomTensor("gamma", {64}), RandomTensor("beta", {64})};
  std::vector<at::Tensor> first;
  const int before = at::get_num_threads();
  for (const int threads : {1, 2, 3}) {
    at::set_num_threads(threads);
    const auto leaves = LeavesOf(values, at::kFloat);
    const NormWeights norm{leaves[3], leaves[4], 1e-5};
    const Residual out = AddProduct(leaves[0], leaves[1], leaves[2], &norm, DropoutPlace{});
    (out.x.square().sum() + out.normed.pow(3).sum()).backward();
    for (std::size_t i = 0; i < leaves.size(); ++i) {
      if (threads == 1) first.push_back(leaves[i].grad().clone());
      EXPECT_TRUE(leaves[i].grad().equal(first[i])) << threads << " threads, gradient " << i;
    }
  }
  at::set_num_threads(before);
}

}  // namespace
}  // namespace pelab::trainer
