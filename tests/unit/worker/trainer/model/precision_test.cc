// The whole decoder in each precision: 32-bit floats through the fused kernels, and bfloat16,
// against 64-bit floats through plain operations. For every encoding and both protocols, with
// dropout (the same elements are dropped in each), padded batches and gradients.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include "tests/unit/worker/trainer/model_fixture.h"
#include "tests/unit/worker/trainer/random_tensor_fixture.h"
#include "worker/trainer/train/classified_sums.h"
#include "worker/trainer/train/trainer.h"

namespace pelab::trainer {
namespace {

at::Tensor Longs(const std::vector<std::int64_t>& numbers) {
  return at::tensor(numbers, at::kLong).to(TestDevice());
}

struct Outcome {
  at::Tensor logits, gradient;
  ClassifiedFigures figures;
};

// A batch's logits, sums and parameter gradients.
Outcome OneBatch(const experiment::Job& job, at::ScalarType type) {
  TestModel model(job, 7, type);
  const Dropout dropout(model.decoder.config(), 3, 5);
  const Batch batch{(RandomTensor("tokens", {6, 16}).abs() * 1e4).remainder(40).to(at::kInt),
                    Longs({16, 3, 9, 1, 12, 16})};
  const at::Tensor classes = Longs({0, 6, 3, 3, 1, 5});
  ClassifiedSums sums(TestDevice());
  const at::Tensor logits = model.decoder.Logits(batch, &dropout);
  logits.backward(
      sums.AddAndDifferentiate(logits.detach(), classes, 0, sums.CountScored(classes, 0)));
  model.parameters.GatherGradients();
  return {logits.detach(), model.parameters.flat_gradient().clone(), sums.Take()[0]};
}

class EveryPrecision : public testing::TestWithParam<std::tuple<std::string, Variant>> {};

TEST_P(EveryPrecision, AgreesWithDoubles) {
  const auto& [protocol, variant] = GetParam();
  const experiment::Job job = VariantJob(protocol, variant, {{"model.dropout", 0.2}});
  const Outcome exact = OneBatch(job, at::kDouble);
  EXPECT_EQ(exact.figures.scored, 5);
  const Outcome single = OneBatch(job, at::kFloat);
  EXPECT_LT(RelativeError(single.logits, exact.logits), kMostFloatError);
  EXPECT_LT(RelativeError(single.gradient, exact.gradient), kMostFloatError);
  EXPECT_NEAR(single.figures.loss, exact.figures.loss, 1e-5 * exact.figures.loss);
  const Outcome rounded = OneBatch(job, at::kBFloat16);
  EXPECT_EQ(rounded.logits.scalar_type(), at::kBFloat16);
  // Values are rounded to 8 bits about thirty times in a row; how often depends on the matrix
  // library. A real error would be larger than this.
  EXPECT_LT(RelativeError(rounded.logits, exact.logits), 0.03);
  EXPECT_LT(RelativeError(rounded.gradient, exact.gradient), 0.1);
  EXPECT_GT(RelativeError(rounded.logits, exact.logits), 1e-4) << "it is not in 16 bits";
}

INSTANTIATE_TEST_SUITE_P(Variants, EveryPrecision,
                         testing::Combine(testing::Values("clean", "published"),
                                          testing::ValuesIn(Variants())),
                         [](const auto& info) {
                           return std::get<0>(info.param) + "_" + std::get<1>(info.param).name;
                         });

// Gradients of the loss by autograd, from the definition.
TEST(ClassifiedSums, AreTheLossAndItsGradient) {
  const at::Tensor logits = (RandomTensor("logits", {9, 5}) * 3).to(at::kDouble);
  const at::Tensor classes = Longs({2, 2, 4, 0, 1, 3, 2, 0, 4});
  for (const std::int64_t ignored : {kNoIgnoredClass, std::int64_t{2}}) {
    const at::Tensor leaf = logits.clone().set_requires_grad(true);
    const at::Tensor loss = at::cross_entropy_loss(leaf, classes, {}, at::Reduction::Mean, ignored);
    loss.backward();
    ClassifiedSums sums(TestDevice());
    const at::Tensor scored = sums.CountScored(classes, ignored);
    // In two parts, like a batch that goes through the model in parts.
    const auto part = [&](std::int64_t from, std::int64_t count) {
      return sums.AddAndDifferentiate(logits.narrow(0, from, count), classes.narrow(0, from, count),
                                      ignored, scored);
    };
    const at::Tensor gradient = at::cat({part(0, 4), part(4, 5)});
    EXPECT_LT(LargestDifference(gradient, leaf.grad()), 1e-15);
    const ClassifiedFigures figures = sums.Take()[0];
    EXPECT_NEAR(figures.mean_loss, loss.item<double>(), 1e-14);
    EXPECT_EQ(figures.scored, ignored == 2 ? 6 : 9);
    EXPECT_NEAR(figures.loss, figures.mean_loss * static_cast<double>(figures.scored), 1e-13);
    const at::Tensor right = logits.argmax(1).eq(classes).logical_and(classes.ne(ignored));
    EXPECT_EQ(figures.correct, right.sum().item<std::int64_t>());
    EXPECT_EQ(sums.Take()[0].scored, 0) << "taken";
  }
}

TEST(ClassifiedSums, ABatchWithNothingScoredAddsNothing) {
  ClassifiedSums sums(TestDevice());
  const at::Tensor classes = Longs({0, 0, 0});
  const at::Tensor gradient = sums.AddAndDifferentiate(RandomTensor("logits", {3, 4}), classes, 0,
                                                       sums.CountScored(classes, 0));
  EXPECT_EQ(gradient.abs().max().item<float>(), 0);
  const ClassifiedFigures figures = sums.Take()[0];
  EXPECT_EQ(figures.mean_loss, 0);
  EXPECT_EQ(figures.scored, 0);
}

TEST(AdamWPrecisions, TheFusedStepIsThePlainOne) {
  const experiment::Job job = SmallJob("clean", "nope", "distance");
  const auto parameters = [](at::ScalarType type, bool rounded) {
    ParameterSet set;
    set.Add("p", {70001}, Init::Normal(1));
    set.Materialize(4, TestDevice(), type, rounded);
    return set;
  };
  ParameterSet doubles = parameters(at::kDouble, false), floats = parameters(at::kFloat, false),
               rounded = parameters(at::kFloat, true);
  AdamW exact(job, &doubles), fused(job, &floats), mixed(job, &rounded);
  for (std::int64_t step = 0; step < 4; ++step) {
    const at::Tensor gradient = RandomTensor("gradient" + std::to_string(step), {70001});
    const auto take = [&](ParameterSet* set, AdamW* optimizer) {
      at::Tensor flat = set->flat_gradient();
      flat.copy_(gradient);
      optimizer->Step(step, 0.01 * static_cast<double>(step + 1));
      EXPECT_EQ(set->flat_gradient().abs().max().item<double>(), 0);
    };
    take(&doubles, &exact);
    take(&floats, &fused);
    take(&rounded, &mixed);
  }
  EXPECT_LT(RelativeError(floats.flat(), doubles.flat()), 1e-6);
  EXPECT_TRUE(rounded.flat().equal(floats.flat()));
  EXPECT_TRUE(rounded.rounded().equal(floats.flat().to(at::kBFloat16)));
}

// Gradients of matrix products arrive in 16 bits, those of norms in 32. The optimizer uses their
// sum.
TEST(Parameters, RoundedCopiesHandTheirGradientsOver) {
  ParameterSet set;
  const auto weight = set.Add("w", {3, 2}, Init::Normal(1));
  const auto norm = set.Add("n", {2}, Init::Constant(1));
  set.Materialize(1, at::kCPU, at::kFloat, /*rounded=*/true);
  EXPECT_EQ(set.factor_type(), at::kBFloat16);
  const at::Tensor x = at::ones({5, 2}, at::kBFloat16);
  (at::linear(x, set.Factor(weight)).to(at::kFloat).sum() + (set[norm] * 3).sum()).backward();
  set.GatherGradients();
  EXPECT_TRUE(set.flat_gradient().equal(at::tensor({5.f, 5.f, 5.f, 5.f, 5.f, 5.f, 3.f, 3.f})));
  set.GatherGradients();
  EXPECT_EQ(set.flat_gradient().sum().item<float>(), 36) << "handed over once";
}

}  // namespace
}  // namespace pelab::trainer
