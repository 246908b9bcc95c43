// The kernels of cross_entropy.h against its formulae in double.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include "tests/support/cuda_emulation.h"
#include "tests/unit/trainer/kernels/random_rows_for_test.h"
#include "worker/trainer/kernels/cross_entropy_kernels.cuh"

namespace pelab::trainer {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

template <class Element>
class CrossEntropyCuda : public testing::Test {};
using Elements = testing::Types<float, Bf16>;
TYPED_TEST_SUITE(CrossEntropyCuda, Elements);

// A batch with room for what comes of it.
template <class Element>
struct Batch {
  Batch(std::int64_t rows, std::int64_t classes, std::int64_t ignored)
      : logits(RandomElements<Element>(rows * classes, 1, 3, 20)),
        labels(rows),
        loss(rows, kNan),
        correct(rows, 9),
        gradient(rows * classes) {
    std::mt19937 random(2);
    for (std::int64_t& label : labels)
      label = random() % 3 == 0 && ignored >= 0 ? ignored : random() % classes;
    p = {rows,    classes,     logits.data(),  labels.data(),   ignored,
         &scored, loss.data(), correct.data(), gradient.data(), &sums};
  }
  void Run() {
    cuda_emulation::Launch({1}, {kTallyThreads}, 0, CountScoredKernel<kTallyThreads>, p.labels,
                           p.rows, p.ignored, &scored);
    const auto blocks = static_cast<unsigned>((p.rows + kEntropyWarps - 1) / kEntropyWarps);
    cuda_emulation::Launch({blocks}, {kEntropyThreads}, 0, CrossEntropyKernel<Element>, p);
    if (p.sums != nullptr) cuda_emulation::Launch({1}, {kTallyThreads}, 0, TallyKernel<Element>, p);
  }

  std::vector<Element> logits;
  std::vector<std::int64_t> labels;
  std::int64_t scored = -1;
  std::vector<float> loss;
  std::vector<std::uint8_t> correct;
  std::vector<Element> gradient;
  ClassificationSums sums;
  CrossEntropy<Element> p;
};

template <class Element>
void ExpectBatch(std::int64_t rows, std::int64_t classes, std::int64_t ignored) {
  SCOPED_TRACE(testing::Message() << rows << " rows, " << classes << " classes, ignoring "
                                  << ignored);
  Batch<Element> batch(rows, classes, ignored);
  std::int64_t scored = 0, right = 0;
  for (const std::int64_t label : batch.labels) scored += label != ignored;
  std::vector<double> loss, gradient;
  double sum = 0;
  for (std::int64_t r = 0; r < rows; ++r) {
    const std::int64_t label = batch.labels[r];
    double normaliser = 0;
    std::int64_t first_largest = 0;
    const auto at = [&](std::int64_t j) {
      return static_cast<double>(ToFloat(batch.logits[r * classes + j]));
    };
    for (std::int64_t j = 0; j < classes; ++j) {
      normaliser += std::exp(at(j));
      if (at(j) > at(first_largest)) first_largest = j;
    }
    const bool counts = label != ignored;
    loss.push_back(counts ? std::log(normaliser) - at(label) : 0);
    sum += loss.back();
    right += counts && first_largest == label;
    for (std::int64_t j = 0; j < classes; ++j) {
      gradient.push_back(
          counts ? (std::exp(at(j)) / normaliser - (j == label)) / static_cast<double>(scored) : 0);
    }
  }
  batch.Run();
  EXPECT_EQ(batch.scored, scored);
  ExpectClose(batch.loss, loss, "loss");
  ExpectClose(batch.gradient, gradient, "gradient");
  EXPECT_EQ(batch.sums.correct, right);
  EXPECT_EQ(batch.sums.scored, scored);
  EXPECT_NEAR(batch.sums.loss, sum, 1e-5 * std::abs(sum) + 1e-12);
  EXPECT_NEAR(batch.sums.mean_loss, sum / static_cast<double>(std::max<std::int64_t>(scored, 1)),
              1e-5 * (std::abs(sum) + 1));
}

TYPED_TEST(CrossEntropyCuda, Batches) {
  for (const std::int64_t classes : {1, 2, 31, 33, 70, 101, 574}) {
    ExpectBatch<TypeParam>(7, classes, -100);
    if (classes > 1) ExpectBatch<TypeParam>(9, classes, 0);
  }
  ExpectBatch<TypeParam>(700, 5, 3);  // more rows than the block that adds them up has threads
}

// Of equal logits the first counts: rows of equal ones, with each of them as the label.
TYPED_TEST(CrossEntropyCuda, FirstOfEqualLogits) {
  Batch<TypeParam> batch(80, 80, -1);
  std::fill(batch.logits.begin(), batch.logits.end(), TypeParam{});
  for (std::int64_t r = 0; r < 80; ++r) {
    batch.labels[r] = r;
    for (const std::int64_t j : {r, (r + 37) % 80}) SetElement(&batch.logits[r * 80 + j], 2);
  }
  batch.Run();
  for (std::int64_t r = 0; r < 80; ++r) EXPECT_EQ(batch.correct[r], r < (r + 37) % 80) << r;
}

// As at::argmax: what is not a number is largest, the first of several.
TYPED_TEST(CrossEntropyCuda, NotANumber) {
  Batch<TypeParam> batch(1, 70, -1);
  for (const std::int64_t j : {40, 69}) SetElement(&batch.logits[j], kNan);
  batch.labels[0] = 40;
  batch.Run();
  EXPECT_EQ(batch.correct[0], 1);
  EXPECT_TRUE(std::isnan(batch.loss[0]));
  EXPECT_TRUE(std::isnan(ToFloat(batch.gradient[0])));
  EXPECT_TRUE(std::isnan(batch.sums.loss));
}

// What an ignored row holds stays out of everything.
TYPED_TEST(CrossEntropyCuda, IgnoredRowOfNoNumbers) {
  Batch<TypeParam> batch(2, 5, 0);
  batch.labels = {0, 2};
  for (int j = 0; j < 5; ++j) SetElement(&batch.logits[j], kNan);
  batch.p.labels = batch.labels.data();
  batch.Run();
  EXPECT_EQ(batch.sums.scored, 1);
  EXPECT_EQ(batch.sums.loss, batch.loss[1]);
  for (int j = 0; j < 5; ++j) EXPECT_EQ(ToFloat(batch.gradient[j]), 0);
}

TYPED_TEST(CrossEntropyCuda, NothingScored) {
  Batch<TypeParam> batch(3, 5, 0);
  std::fill(batch.labels.begin(), batch.labels.end(), 0);
  batch.Run();
  EXPECT_EQ(batch.sums.scored, 0);
  EXPECT_EQ(batch.sums.mean_loss, 0);
  for (const TypeParam gradient : batch.gradient) EXPECT_EQ(ToFloat(gradient), 0);
}

// Logits that a sum of exponentials would not hold.
TYPED_TEST(CrossEntropyCuda, LargeLogits) {
  Batch<TypeParam> batch(1, 3, -1);
  const float logits[] = {20000, 20000, -20000};
  for (int j = 0; j < 3; ++j) SetElement(&batch.logits[j], logits[j]);
  batch.labels[0] = 1;
  batch.Run();
  EXPECT_NEAR(batch.loss[0], std::log(2.0), 1e-6);
  batch.labels[0] = 2;
  batch.Run();
  EXPECT_NEAR(batch.loss[0], 2 * ToFloat(batch.logits[0]) + std::log(2.0), 40000 * 1e-6);
}

// Parts of a batch, the gradient in the logits' place, give what the whole gives; sums go on from what they were.
TYPED_TEST(CrossEntropyCuda, PartsInPlace) {
  constexpr std::int64_t kRows = 10, kClasses = 45, kFirst = 4;
  Batch<TypeParam> whole(kRows, kClasses, 0), parts(kRows, kClasses, 0);
  for (Batch<TypeParam>* batch : {&whole, &parts}) {  // right in every other row
    for (std::int64_t r = 0; r < kRows; r += 2) {
      SetElement(&batch->logits[r * kClasses + batch->labels[r]], 50);
    }
  }
  whole.Run();
  cuda_emulation::Launch({1}, {kTallyThreads}, 0, CountScoredKernel<kTallyThreads>, parts.p.labels,
                         kRows, std::int64_t{0}, &parts.scored);
  for (const std::int64_t begin : {std::int64_t{0}, kFirst}) {
    CrossEntropy<TypeParam> p = parts.p;
    p.rows = begin == 0 ? kFirst : kRows - kFirst;
    p.logits += begin * kClasses, p.labels += begin, p.loss += begin, p.correct += begin;
    p.gradient = parts.logits.data() + begin * kClasses;
    cuda_emulation::Launch({3}, {kEntropyThreads}, 0, CrossEntropyKernel<TypeParam>, p);
    cuda_emulation::Launch({1}, {kTallyThreads}, 0, TallyKernel<TypeParam>, p);
  }
  EXPECT_EQ(Doubles(parts.logits), Doubles(whole.gradient));
  EXPECT_EQ(parts.sums.correct, whole.sums.correct);
  EXPECT_EQ(parts.sums.scored, whole.sums.scored);
  EXPECT_NEAR(parts.sums.mean_loss, whole.sums.mean_loss, 1e-9);
}

TYPED_TEST(CrossEntropyCuda, EvaluationWantsNoGradient) {
  Batch<TypeParam> batch(6, 33, -1);
  batch.p.gradient = nullptr;
  batch.Run();
  Batch<TypeParam> whole(6, 33, -1);
  whole.Run();
  EXPECT_EQ(batch.loss, whole.loss);
  EXPECT_EQ(batch.sums.correct, whole.sums.correct);
}

}  // namespace
}  // namespace pelab::trainer
