// Accuracies on every split, against a job that tests on that split and against plain passes.
#include "worker/trainer/analysis/split_accuracy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "tests/unit/worker/trainer/analysis/ablation_fixture.h"
#include "tests/unit/worker/trainer/own_data_fixture.h"
#include "worker/trainer/protocol/error.h"

namespace pelab::trainer {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// Random data whose splits are called short, train and long; train has as many examples as the two
// others together.
DataFile ThreeSplits(bool padded) {
  DataFile file = RandomByPosition({48, 48, 16, padded});
  file.metadata["splits"] = R"(["short","train","long"])";
  std::vector<std::int32_t> split;
  for (std::int32_t i = 0; i < 96; ++i) split.push_back(i % 2 == 0 ? 1 : i % 4 == 1 ? 0 : 2);
  file.Set("split", {96}, split);
  return file;
}

std::vector<std::string> Names(const SplitAccuracy& result) {
  std::vector<std::string> names;
  for (const SplitScore& split : result.splits) names.push_back(split.name);
  return names;
}

// The targets of test examples [0, count) that one pass for each example has right, and all.
std::pair<std::int64_t, std::int64_t> CountAlone(const Subject& subject, std::int64_t count) {
  std::int64_t right = 0, total = 0;
  const std::int64_t first = subject.data.train_examples();
  for (std::int64_t i = first; i < first + count; ++i) {
    const LabeledBatch one = subject.data.Range(i, i + 1);
    const at::Tensor best = subject.model.decoder.Logits(one.inputs, nullptr).argmax(1);
    for (std::int64_t t = 0; t < one.classes.numel(); ++t) {
      const auto target = one.classes[t].item<std::int64_t>();
      if (target == subject.data.ignored_class()) continue;
      ++total;
      right += best[t].item<std::int64_t>() == target ? 1 : 0;
    }
  }
  return {right, total};
}

TEST(SplitAccuracy, EachSplitIsWhatAJobThatTestsOnItFinds) {
  const at::NoGradGuard no_grad;
  const DataFolder folder;
  for (const char* protocol : {"clean", "published"}) {
    for (const bool padded : {false, true}) {
      SCOPED_TRACE(testing::Message() << protocol << " padded " << padded);
      const DataFile file = ThreeSplits(padded);
      const auto job_on = [&](const char* split) {
        return folder.Job(file, {}, split, protocol, "rope");
      };
      const experiment::Job job = job_on("short");
      const Subject subject(job);
      const SplitAccuracy result = ScoreSplits(job, subject.model.decoder, subject.data, 0);
      ASSERT_THAT(Names(result), ElementsAre("train", "short", "long"));
      EXPECT_EQ(result.tested, 1u);
      for (const std::size_t split : {1, 2}) {
        const SplitScore& found = result.splits[split];
        const experiment::Job tests_on_it = job_on(found.name.c_str());
        const Subject other(tests_on_it);
        const Score score =
            Evaluate(other.model.decoder, other.data, other.data.train_examples(), 72);
        EXPECT_EQ(found.score.correct, score.correct) << found.name;
        EXPECT_EQ(found.score.total, score.total) << found.name;
        EXPECT_NEAR(found.score.loss, score.loss, 1e-12) << found.name;
        EXPECT_EQ(found.chance, experiment::ChanceAccuracy(tests_on_it)) << found.name;
        const auto [right, total] = CountAlone(other, 24);
        EXPECT_EQ(found.score.correct, right) << found.name;
        EXPECT_EQ(found.score.total, total) << found.name;
        EXPECT_GT(right, 0);
      }
      const Score train = Evaluate(subject.model.decoder, subject.data, 0, 48);
      EXPECT_EQ(result.splits[0].score.correct, train.correct);
      EXPECT_EQ(result.splits[0].score.total, train.total);
      const Subject of_long(job_on("long"));
      const SplitAccuracy five = ScoreSplits(job, subject.model.decoder, subject.data, 5);
      const auto [right, total] = CountAlone(of_long, 5);
      EXPECT_EQ(five.splits[2].score.correct, right);
      EXPECT_EQ(five.splits[2].score.total, total);
    }
  }
}

TEST(SplitAccuracy, TasksThatAreGeneratedHaveTwo) {
  const at::NoGradGuard no_grad;
  const experiment::Job job = SmallJob("clean", "rope", "distance");
  const Subject subject(job);
  const SplitAccuracy result = ScoreSplits(job, subject.model.decoder, subject.data, 0);
  ASSERT_THAT(Names(result), ElementsAre("train", "test"));
  EXPECT_EQ(result.tested, 1u);
  const Score test = Evaluate(subject.model.decoder, subject.data, 96, 144);
  EXPECT_EQ(result.splits[1].score.correct, test.correct);
  EXPECT_EQ(result.splits[1].score.total, 48);
  EXPECT_EQ(result.splits[0].score.total, 96);
}

TEST(SplitAccuracy, AFileThatChangedIsRefused) {
  const at::NoGradGuard no_grad;
  const DataFolder folder;
  const DataFile file = ThreeSplits(true);
  const experiment::Job job = folder.Job(file, {}, "short");
  const Subject subject(job);
  folder.WriteAs(job.Choice("task.file"), file.Bytes() + " ");
  try {
    ScoreSplits(job, subject.model.decoder, subject.data, 0);
    ADD_FAILURE() << "a file of other bytes was read";
  } catch (const TrainerError& error) {
    EXPECT_THAT(error.what(), HasSubstr("data data"));
  }
}

}  // namespace
}  // namespace pelab::trainer
