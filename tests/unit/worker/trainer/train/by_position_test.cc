// Training and evaluation with a target for each position, against loops over positions.
#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "tests/unit/worker/trainer/model_fixture.h"
#include "tests/unit/worker/trainer/own_data_fixture.h"
#include "tests/unit/worker/trainer/random_tensor_fixture.h"
#include "worker/trainer/train/classified_sums.h"
#include "worker/trainer/train/evaluate.h"
#include "worker/trainer/train/sections.h"
#include "worker/trainer/train/trainer.h"

namespace pelab::trainer {
namespace {

struct PositionBench {
  explicit PositionBench(const experiment::Job& job, const StepOptions& ways = {})
      : dataset(MakeDataset(job)),
        labels(LabelSpaceOf(job, dataset)),
        data(dataset, labels, at::kCPU),
        model(job, labels.classes),
        trainer(model.job, &model.decoder, &model.parameters, &data, ways) {}
  Dataset dataset;
  LabelSpace labels;
  DeviceData data;
  TestModel model;
  Trainer trainer;

  // The class of a position, by the data set; kNothing if it is not scored.
  std::int64_t ClassOf(std::int64_t example, std::int64_t t) const {
    const std::int32_t label = dataset.labels[example * dataset.length + t];
    if (label == kNoTarget) return kNothing;
    const std::int64_t of_label = label - labels.offset;
    return of_label == 0 && !labels.score_zero ? kNothing : of_label;
  }
  static constexpr std::int64_t kNothing = -7;
};

TEST(ByPosition, ClassesAreThoseOfThePositions) {
  const DataFolder folder;
  for (const char* protocol : {"clean", "published"}) {
    const PositionBench bench(folder.Job(RandomByPosition(), {}, "test", protocol));
    EXPECT_TRUE(bench.data.by_position());
    EXPECT_TRUE(bench.data.padded());
    const bool published = std::string(protocol) == "published";
    EXPECT_EQ(bench.data.ignored_class(), published ? 0 : -1);
    EXPECT_EQ(bench.labels.classes, published ? 40 : 5);
    EXPECT_EQ(bench.labels.offset, published ? 0 : 2);
    const auto expect = [&](const at::Tensor& classes, const std::vector<std::int64_t>& examples,
                            std::int64_t positions) {
      ASSERT_EQ(classes.numel(), static_cast<std::int64_t>(examples.size()) * positions);
      std::int64_t at = 0;
      for (const std::int64_t example : examples) {
        for (std::int64_t t = 0; t < positions; ++t, ++at) {
          const std::int64_t wanted = bench.ClassOf(example, t);
          ASSERT_EQ(classes[at].item<std::int64_t>(),
                    wanted == PositionBench::kNothing ? bench.data.ignored_class() : wanted)
              << "example " << example << ", position " << t;
        }
      }
    };
    const LabeledBatch range = bench.data.Range(94, 99);
    EXPECT_EQ(range.per_example(), 16);
    expect(range.classes, {94, 95, 96, 97, 98}, 16);
    const at::Tensor indices = at::tensor(std::vector<std::int64_t>{140, 3, 77}, at::kLong);
    expect(bench.data.At(indices).classes, {140, 3, 77}, 16);
    expect(bench.data.ClassesAt(indices), {140, 3, 77}, 16);
    const LabeledBatch first = bench.data.At(indices, 6);
    EXPECT_EQ(first.per_example(), 6);
    EXPECT_EQ(first.inputs.tokens.sizes(), (std::vector<std::int64_t>{3, 6}));
    expect(first.classes, {140, 3, 77}, 6);
  }
}

// Small random logits of 4 classes for 3 examples of 5 positions, some of them without a target.
TEST(ByPosition, SumsAreThoseOfALoopOverPositions) {
  const at::Tensor logits = RandomTensor("by_position", {15, 4}).to(at::kDouble);
  const std::vector<std::int64_t> of = {0, -1, 3, 2, -1, -1, -1, 1, 1, 3, 0, 2, -1, 3, 0};
  const at::Tensor classes = at::tensor(of, at::kLong);
  double loss = 0;
  std::int64_t correct = 0, scored = 0;
  at::Tensor gradient = at::zeros({15, 4}, at::kDouble);
  for (std::int64_t i = 0; i < 15; ++i) {
    if (of[i] < 0) continue;
    const double* const row = logits.data_ptr<double>() + i * 4;
    double sum = 0;
    for (int c = 0; c < 4; ++c) sum += std::exp(row[c]);
    loss += std::log(sum) - row[of[i]];
    correct += std::max_element(row, row + 4) - row == of[i];
    ++scored;
    for (int c = 0; c < 4; ++c) gradient[i][c] = (std::exp(row[c]) / sum - (c == of[i])) / 10;
  }
  ASSERT_EQ(scored, 10);
  ASSERT_GT(correct, 0);
  ASSERT_LT(correct, 10);
  ClassifiedSums sums(at::kCPU);
  const at::Tensor count = sums.CountScored(classes, -1);
  EXPECT_EQ(count.item<std::int64_t>(), 10);
  const at::Tensor found = sums.AddAndDifferentiate(logits, classes, -1, count);
  EXPECT_LT(LargestDifference(found, gradient), 1e-12);
  const ClassifiedFigures figures = sums.Take().front();
  EXPECT_NEAR(figures.loss, loss, 1e-12);
  EXPECT_NEAR(figures.mean_loss, loss / 10, 1e-12);
  EXPECT_EQ(figures.correct, correct);
  EXPECT_EQ(figures.scored, 10);
  const at::Tensor counted = CountCorrect(logits, classes, -1);
  EXPECT_EQ(counted[0].item<std::int64_t>(), correct);
  EXPECT_EQ(counted[1].item<std::int64_t>(), 10);
}

// Each example alone, without its padding: nothing else may change its logits.
TEST(ByPosition, EvaluationCountsEveryTarget) {
  const DataFolder folder;
  for (const char* protocol : {"clean", "published"}) {
    for (const bool padded : {false, true}) {
      SCOPED_TRACE(std::string(protocol) + (padded ? ", padded" : ""));
      const experiment::Job job =
          folder.Job(RandomByPosition({96, 48, 16, padded}),
                     {{"model.key_padding", std::string("masked")}}, "test", protocol, "rope");
      const PositionBench bench(job);
      EXPECT_EQ(LeavesPaddingOut(bench.model.config, bench.data), padded);
      double loss = 0;
      std::int64_t correct = 0, total = 0;
      for (std::int64_t example = 96; example < 144; ++example) {
        const std::int64_t length = bench.dataset.lengths[example];
        const LabeledBatch one = bench.data.Range(example, example + 1);
        const Batch alone = {one.inputs.tokens.narrow(1, 0, length), {}};
        const at::Tensor logits = bench.model.decoder.Logits(alone, nullptr).detach();
        ASSERT_EQ(logits.sizes(), (std::vector<std::int64_t>{length, bench.labels.classes}));
        for (std::int64_t t = 0; t < length; ++t) {
          const std::int64_t wanted = bench.ClassOf(example, t);
          if (wanted == PositionBench::kNothing) continue;
          loss -= at::log_softmax(logits[t], 0)[wanted].item<double>();
          correct += logits[t].argmax().item<std::int64_t>() == wanted;
          ++total;
        }
      }
      const Score score = Evaluate(bench.model.decoder, bench.data, 96, 144);
      EXPECT_EQ(score.total, total);
      if (std::string(protocol) == "clean") {
        EXPECT_EQ(total, job.Int("task.test_targets"));
      }
      EXPECT_EQ(score.correct, correct);
      EXPECT_GT(correct, 0);
      EXPECT_NEAR(score.loss, loss / static_cast<double>(total), 1e-9);
    }
  }
}

TEST(ByPosition, AnEpochInPartsOrWithPaddingIsTheSame) {
  const DataFolder folder;
  for (const char* protocol : {"clean", "published"}) {
    const experiment::Job job = folder.Job(RandomByPosition(),
                                           {{"model.key_padding", std::string("masked")},
                                            {"model.dropout", 0.2},
                                            {"train.batch_size", std::int64_t{40}}},
                                           "test", protocol, "rope");
    PositionBench whole(job, {0, true, /*leave_padding_out=*/false}), without(job), parts(job, {7});
    const EpochResult expected = whole.trainer.RunEpoch(0)[0];
    if (std::string(protocol) == "clean") {
      EXPECT_EQ(expected.train_total, job.Int("task.train_targets"));
      EXPECT_EQ(expected.test.total, job.Int("task.test_targets"));
    }
    for (PositionBench* other : {&without, &parts}) {
      const EpochResult got = other->trainer.RunEpoch(0)[0];
      EXPECT_NEAR(got.train_loss, expected.train_loss, 1e-9 * expected.train_loss) << protocol;
      EXPECT_EQ(got.train_total, expected.train_total);
      EXPECT_EQ(got.train_correct, expected.train_correct);
      EXPECT_LT(RelativeError(other->model.parameters.flat(), whole.model.parameters.flat()), 1e-9);
    }
  }
}

// A label that says which token stands there is learned soon.
TEST(ByPosition, AModelLearnsALabelOfThePositionsToken) {
  const DataFolder folder;
  DataFile file = RandomByPosition();
  const TaskFile read = ParseTaskFile(file.Bytes()).file;
  std::vector<std::int32_t> targets;
  for (const std::int32_t token : read.tokens) targets.push_back(2 + token % 5);
  file.Set("targets", {144, 16}, targets);
  PositionBench bench(folder.Job(file, {{"train.lr", 2e-2}, {"train.epochs", std::int64_t{20}}}));
  Score test;
  for (std::int64_t epoch = 0; epoch < 20; ++epoch) test = bench.trainer.RunEpoch(epoch)[0].test;
  EXPECT_GT(static_cast<double>(test.correct), 0.9 * static_cast<double>(test.total));
}

}  // namespace
}  // namespace pelab::trainer
