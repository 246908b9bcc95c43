// The kernels of cross_entropy.h against its formulas in double.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <random>
#include <vector>

#include "tests/support/cuda_emulation.h"
#include "tests/unit/worker/trainer/kernels/members_fixture.h"
#include "tests/unit/worker/trainer/kernels/random_rows_fixture.h"
#include "worker/trainer/kernels/loss/cross_entropy_kernels.cuh"

namespace pelab::trainer::cross_entropy_cuda_test {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

template <class Element>
class CrossEntropyCuda : public testing::Test {};
using Elements = testing::Types<float, Bf16>;
TYPED_TEST_SUITE(CrossEntropyCuda, Elements);

template <class Element>
void Count(const CrossEntropy<Element>& p, std::int64_t* scored) {
  cuda_emulation::Launch({1, 1, static_cast<unsigned>(p.members)}, {kTallyThreads}, 0,
                         CountScoredKernel<kTallyThreads>, p.labels, p.rows, p.ignored, scored);
}

template <class Element>
void Launch(const CrossEntropy<Element>& p) {
  const auto members = static_cast<unsigned>(p.members),
             blocks = static_cast<unsigned>((p.rows + kEntropyWarps - 1) / kEntropyWarps);
  cuda_emulation::Launch({blocks, 1, members}, {kEntropyThreads}, 0, CrossEntropyKernel<Element>,
                         p);
  if (p.sums == nullptr) return;
  cuda_emulation::Launch({1, 1, members}, {kTallyThreads}, 0, TallyKernel<Element>, p);
}

constexpr std::int64_t kNone = -100;  // no row is ignored

// A batch with room for its results.
template <class Element>
struct Batch {
  Batch(std::int64_t rows, std::int64_t classes, std::int64_t ignored, unsigned seed = 0)
      : logits(RandomElements<Element>(rows * classes, 2 * seed + 1, 3, 20)),
        labels(rows),
        loss(rows, kNan),
        correct(rows, 9),
        gradient(rows * classes) {
    std::mt19937 random(2 * seed + 2);
    for (std::int64_t& label : labels)
      label = random() % 3 == 0 && ignored != kNone ? ignored : random() % classes;
    p = {1,       rows,        classes,        logits.data(),   labels.data(), ignored,
         &scored, loss.data(), correct.data(), gradient.data(), &sums};
  }
  void Run() {
    Count(p, &scored);
    Launch(p);
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

// Rows [begin, end) of a batch of one member; N stays that of the whole batch.
template <class Element>
CrossEntropy<Element> PartOf(CrossEntropy<Element> p, std::int64_t begin, std::int64_t end) {
  p.rows = end - begin;
  p.logits += begin * p.classes, p.labels += begin, p.loss += begin, p.correct += begin;
  if (p.gradient != nullptr) p.gradient += begin * p.classes;
  return p;
}

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
    double normalizer = 0;
    std::int64_t first_largest = 0;
    const auto at = [&](std::int64_t j) {
      return static_cast<double>(ToFloat(batch.logits[r * classes + j]));
    };
    for (std::int64_t j = 0; j < classes; ++j) {
      normalizer += std::exp(at(j));
      if (at(j) > at(first_largest)) first_largest = j;
    }
    const bool counts = label != ignored;
    loss.push_back(counts ? std::log(normalizer) - at(label) : 0);
    sum += loss.back();
    right += counts && first_largest == label;
    for (std::int64_t j = 0; j < classes; ++j) {
      gradient.push_back(
          counts ? (std::exp(at(j)) / normalizer - (j == label)) / static_cast<double>(scored) : 0);
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
    ExpectBatch<TypeParam>(7, classes, kNone);
    ExpectBatch<TypeParam>(11, classes, -1);  // positions without a target have this label
    if (classes > 1) ExpectBatch<TypeParam>(9, classes, 0);
  }
  ExpectBatch<TypeParam>(700, 5, 3);  // more rows than the summing block has threads
}

// The first of equal logits counts: rows of equal logits, with each of them as the label.
TYPED_TEST(CrossEntropyCuda, FirstOfEqualLogits) {
  Batch<TypeParam> batch(80, 80, kNone);
  std::fill(batch.logits.begin(), batch.logits.end(), TypeParam{});
  for (std::int64_t r = 0; r < 80; ++r) {
    batch.labels[r] = r;
    for (const std::int64_t j : {r, (r + 37) % 80}) SetElement(&batch.logits[r * 80 + j], 2);
  }
  batch.Run();
  for (std::int64_t r = 0; r < 80; ++r) EXPECT_EQ(batch.correct[r], r < (r + 37) % 80) << r;
}

// Like at::argmax: NaN counts as largest, and the first of several counts.
TYPED_TEST(CrossEntropyCuda, NotANumber) {
  Batch<TypeParam> batch(1, 70, kNone);
  for (const std::int64_t j : {40, 69}) SetElement(&batch.logits[j], kNan);
  batch.labels[0] = 40;
  batch.Run();
  EXPECT_EQ(batch.correct[0], 1);
  EXPECT_TRUE(std::isnan(batch.loss[0]));
  EXPECT_TRUE(std::isnan(ToFloat(batch.gradient[0])));
  EXPECT_TRUE(std::isnan(batch.sums.loss));
}

// The content of an ignored row affects nothing.
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

// Logits for which a plain sum of exponentials would overflow.
TYPED_TEST(CrossEntropyCuda, LargeLogits) {
  Batch<TypeParam> batch(1, 3, kNone);
  const float logits[] = {20000, 20000, -20000};
  for (int j = 0; j < 3; ++j) SetElement(&batch.logits[j], logits[j]);
  batch.labels[0] = 1;
  batch.Run();
  EXPECT_NEAR(batch.loss[0], std::log(2.0), 1e-6);
  batch.labels[0] = 2;
  batch.Run();
  EXPECT_NEAR(batch.loss[0], 2 * ToFloat(batch.logits[0]) + std::log(2.0), 40000 * 1e-6);
}

// Parts of a batch, with the gradient in the logits' place, give the same as the whole. Sums
// continue from their earlier values.
TYPED_TEST(CrossEntropyCuda, PartsInPlace) {
  constexpr std::int64_t kRows = 10, kClasses = 45, kFirst = 4;
  Batch<TypeParam> whole(kRows, kClasses, 0), parts(kRows, kClasses, 0);
  for (Batch<TypeParam>* batch : {&whole, &parts}) {  // right in every other row
    for (std::int64_t r = 0; r < kRows; r += 2) {
      SetElement(&batch->logits[r * kClasses + batch->labels[r]], 50);
    }
  }
  whole.Run();
  Count(parts.p, &parts.scored);
  parts.p.gradient = parts.logits.data();
  Launch(PartOf(parts.p, 0, kFirst));
  Launch(PartOf(parts.p, kFirst, kRows));
  EXPECT_EQ(AsDoubles(parts.logits), AsDoubles(whole.gradient));
  EXPECT_EQ(parts.sums.correct, whole.sums.correct);
  EXPECT_EQ(parts.sums.scored, whole.sums.scored);
  EXPECT_NEAR(parts.sums.mean_loss, whole.sums.mean_loss, 1e-9);
}

TYPED_TEST(CrossEntropyCuda, EvaluationWantsNoGradient) {
  Batch<TypeParam> batch(6, 33, kNone);
  batch.p.gradient = nullptr;
  batch.Run();
  Batch<TypeParam> whole(6, 33, kNone);
  whole.Run();
  EXPECT_EQ(batch.loss, whole.loss);
  EXPECT_EQ(batch.sums.correct, whole.sums.correct);
}

// The results of one part of the batches, one member after another.
template <class Element>
struct Results {
  std::vector<float> loss;
  std::vector<std::uint8_t> correct;
  std::vector<Element> gradient;
};

// Batches of kMembers members, in parts that end at `ends`, with all members' rows of a part at
// once. Expects the same bits as for each batch alone in the same parts. If `one_empty`, the second
// batch has no scored rows.
template <class Element>
void ExpectMembersAsAlone(const std::vector<std::int64_t>& ends, std::int64_t classes,
                          std::int64_t ignored, bool one_empty, bool in_place = false) {
  const std::int64_t rows = ends.back();
  std::vector<std::unique_ptr<Batch<Element>>> alone;
  std::vector<std::int64_t> all_labels, scored(kMembers + 1, -1);
  std::vector<ClassificationSums> sums(kMembers);
  for (unsigned m = 0; m < kMembers; ++m) {
    alone.push_back(std::make_unique<Batch<Element>>(rows, classes, ignored, m));
    Batch<Element>& one = *alone.back();
    if (one_empty && m == 1) std::fill(one.labels.begin(), one.labels.end(), ignored);
    Append(one.labels, &all_labels);
    sums[m] = one.sums = {0.25 * m, 0.5 * m, 3 * m, 5 * m};
  }
  CrossEntropy<Element> p = alone[0]->p;
  p.members = kMembers, p.labels = all_labels.data(), p.batch = scored.data(), p.sums = sums.data();
  Count(p, scored.data());
  for (const auto& one : alone) Count(one->p, &one->scored);
  EXPECT_EQ(scored,
            (std::vector{alone[0]->scored, alone[1]->scored, alone[2]->scored, std::int64_t{-1}}));
  EXPECT_EQ(one_empty, scored[1] == 0);
  for (std::size_t part = 0; part < ends.size(); ++part) {
    const std::int64_t begin = part == 0 ? 0 : ends[part - 1];
    SCOPED_TRACE(begin);
    std::vector<Element> logits, gradient;
    std::vector<std::int64_t> labels;
    for (const auto& one : alone) {
      const CrossEntropy<Element> own = PartOf(one->p, begin, ends[part]);
      logits.insert(logits.end(), own.logits, own.logits + own.rows * classes);
      labels.insert(labels.end(), own.labels, own.labels + own.rows);
    }
    gradient = NotNumbers<Element>(static_cast<std::int64_t>(logits.size()));
    std::vector<float> loss(labels.size(), kNan);
    std::vector<std::uint8_t> correct(labels.size(), 9);
    p.rows = ends[part] - begin;
    p.logits = logits.data(), p.labels = labels.data();
    p.loss = loss.data(), p.correct = correct.data();
    p.gradient = in_place ? logits.data() : gradient.data();
    Launch(p);
    Results<Element> expected;
    for (const auto& one : alone) {
      const CrossEntropy<Element> own = PartOf(one->p, begin, ends[part]);
      Launch(own);
      expected.loss.insert(expected.loss.end(), own.loss, own.loss + own.rows);
      expected.correct.insert(expected.correct.end(), own.correct, own.correct + own.rows);
      expected.gradient.insert(expected.gradient.end(), own.gradient,
                               own.gradient + own.rows * classes);
    }
    ExpectSameBits(loss, expected.loss, "loss");
    ExpectSameBits(correct, expected.correct, "correct");
    ExpectSameBits(in_place ? logits : gradient, expected.gradient, "gradient");
  }
  for (std::int64_t m = 0; m < kMembers; ++m) {
    SCOPED_TRACE(m);
    EXPECT_EQ(sums[m].loss, alone[m]->sums.loss);
    EXPECT_EQ(sums[m].mean_loss, alone[m]->sums.mean_loss);
    EXPECT_EQ(sums[m].correct, alone[m]->sums.correct);
    EXPECT_EQ(sums[m].scored, alone[m]->sums.scored);
  }
}

TYPED_TEST(CrossEntropyCuda, Members) {
  for (const std::int64_t classes : {1, 2, 31, 33, 70, 574}) {
    ExpectMembersAsAlone<TypeParam>({7}, classes, kNone, false);
    ExpectMembersAsAlone<TypeParam>({9}, classes, 0, true);
  }
  ExpectMembersAsAlone<TypeParam>({700}, 5, 3, false);
}

TYPED_TEST(CrossEntropyCuda, MembersInParts) {
  for (const bool one_empty : {false, true}) {
    for (const bool in_place : {false, true}) {
      ExpectMembersAsAlone<TypeParam>({4, 9, 10}, 45, 0, one_empty, in_place);
    }
  }
}

TYPED_TEST(CrossEntropyCuda, MembersInEvaluation) {
  Batch<TypeParam> first(6, 33, -1, 0), second(6, 33, -1, 1);
  std::vector<TypeParam> logits = first.logits;
  std::vector<std::int64_t> labels = first.labels;
  Append(second.logits, &logits);
  Append(second.labels, &labels);
  std::vector<float> loss(12, kNan);
  std::vector<std::uint8_t> correct(12, 9);
  CrossEntropy<TypeParam> p = first.p;
  p.members = 2, p.logits = logits.data(), p.labels = labels.data(), p.batch = nullptr;
  p.loss = loss.data(), p.correct = correct.data(), p.gradient = nullptr, p.sums = nullptr;
  Launch(p);
  first.Run();
  second.Run();
  Append(second.loss, &first.loss);
  Append(second.correct, &first.correct);
  ExpectSameBits(loss, first.loss, "loss");
  ExpectSameBits(correct, first.correct, "correct");
}

}  // namespace
}  // namespace pelab::trainer::cross_entropy_cuda_test
