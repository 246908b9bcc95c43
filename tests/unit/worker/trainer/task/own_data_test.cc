// Data sets of jobs whose examples come from a file.
#include "worker/trainer/task/own_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "tests/unit/worker/trainer/own_data_fixture.h"
#include "worker/trainer/protocol/error.h"

namespace pelab::trainer {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr std::int32_t kNone = kNoTarget;

DataFile Named(DataFile file) {
  file.metadata["name"] = "parity";
  return file;
}

TEST(OwnData, TheTrainingExamplesComeFirstInTheOrderOfTheFile) {
  const DataFolder folder;
  const Dataset data = ReadOwnData(folder.Job(SmallData()));
  EXPECT_EQ(data.length, 4);
  EXPECT_EQ(data.train_examples, 3);
  EXPECT_EQ(data.size(), 6);
  EXPECT_EQ(data.test_examples(), 3);
  EXPECT_FALSE(data.by_position);
  EXPECT_FALSE(data.HasPadding());
  EXPECT_EQ(data.label_min, 0);
  EXPECT_EQ(data.label_count, 2);
  EXPECT_TRUE(data.triggers.empty());
  // Rows 0, 2 and 3, then 1, 4 and 5.
  EXPECT_THAT(data.tokens,
              ElementsAre(1, 2, 3, 4, 2, 2, 2, 2, 3, 1, 3, 1, 5, 6, 7, 1, 4, 4, 1, 1, 6, 5, 4, 3));
  EXPECT_THAT(data.labels, ElementsAre(1, 1, 0, 0, 1, 0));
  EXPECT_THAT(data.lengths, ElementsAre(4, 4, 4, 4, 4, 4));
}

TEST(OwnData, OfOtherTestSplitsThereIsNothing) {
  const DataFolder folder;
  DataFile file = SmallData();
  file.metadata["splits"] = R"(["long","train","test"])";
  file.Set<std::int32_t>("split", {6}, {2, 0, 1, 0, 1, 2});
  const Dataset of_long = ReadOwnData(folder.Job(file, {}, "long"));
  EXPECT_EQ(of_long.train_examples, 2);
  EXPECT_THAT(of_long.labels, ElementsAre(1, 1, 0, 0)) << "rows 2 and 4, then 1 and 3";
  EXPECT_THAT(of_long.tokens, ElementsAre(2, 2, 2, 2, 4, 4, 1, 1, 5, 6, 7, 1, 3, 1, 3, 1));
  const Dataset of_test = ReadOwnData(folder.Job(file, {}, "test"));
  EXPECT_THAT(of_test.tokens, ElementsAre(2, 2, 2, 2, 4, 4, 1, 1, 1, 2, 3, 4, 6, 5, 4, 3));
}

TEST(OwnData, PositionsWithoutATargetHaveNoLabel) {
  const DataFolder folder;
  const Dataset data = MakeDataset(folder.Job(SmallDataByPosition()));
  EXPECT_TRUE(data.by_position);
  EXPECT_TRUE(data.HasPadding());
  EXPECT_EQ(data.label_count, 3);
  EXPECT_THAT(data.lengths, ElementsAre(4, 4, 3, 2, 4, 1));
  EXPECT_THAT(data.labels,
              ElementsAre(2, kNone, 0, 2, kNone, kNone, 1, kNone, 2, 1, kNone, kNone, 0, 2, kNone,
                          kNone, kNone, 2, kNone, 1, 1, kNone, kNone, kNone));
  EXPECT_THAT(data.tokens,
              ElementsAre(1, 2, 3, 4, 2, 2, 2, 2, 3, 1, 3, 0, 5, 6, 0, 0, 4, 4, 1, 1, 6, 0, 0, 0));
}

TEST(OwnData, LabelsKeepTheirNumbers) {
  const DataFolder folder;
  DataFile file = SmallData();
  file.Set<std::int32_t>("targets", {6}, {-1, -3, -1, 2, 2, -3});
  file.metadata["first_label"] = "-3";
  const experiment::Job job = folder.Job(file);
  const Dataset data = MakeDataset(job);
  EXPECT_THAT(data.labels, ElementsAre(-1, -1, 2, -3, 2, -3));
  const LabelSpace space = LabelSpaceOf(job, data);
  EXPECT_EQ(space.classes, 6);
  EXPECT_EQ(space.offset, -3);
  EXPECT_TRUE(space.score_zero);
}

// The kind and the message of the error.
std::pair<ErrorKind, std::string> RefusalOf(const experiment::Job& job) {
  try {
    MakeDataset(job);
  } catch (const TrainerError& error) {
    return {error.kind(), error.what()};
  }
  return {ErrorKind::kInternal, "nothing is refused"};
}

TEST(OwnData, EveryFieldIsAsTheFileSays) {
  const DataFolder folder;
  const auto text = [](const char* value) { return catalog::Value(std::string(value)); };
  const auto whole = [](std::int64_t value) { return catalog::Value(value); };
  const struct {
    const char* field;
    catalog::Value value;
    const char* said;
  } wrong[] = {
      {"task.data", text("other"), "data is parity; allowed: that of the job, other"},
      {"task.targets", text("sequence"), "targets is position; allowed: that of the job, sequence"},
      {"task.length", whole(5), "length is 4; allowed: that of the job, 5"},
      {"task.vocabulary", whole(9), "vocabulary is 8; allowed: that of the job, 9"},
      {"task.classes", whole(4), "classes is 3; allowed: that of the job, 4"},
      {"task.first_label", whole(-1), "first_label is 0; allowed: that of the job, -1"},
      {"task.padded", false, "padded is true; allowed: that of the job, false"},
      {"task.chance", 0.5, "chance is 0.4; allowed: that of the job, 0.5"},
      {"task.train_examples", whole(2), "train_examples is 3; allowed: that of the job, 2"},
      {"task.test_examples", whole(4), "test_examples is 3; allowed: that of the job, 4"},
      {"task.train_targets", whole(7), "train_targets is 6; allowed: that of the job, 7"},
      {"task.test_targets", whole(4), "test_targets is 5; allowed: that of the job, 4"},
  };
  for (const auto& one : wrong) {
    const auto [kind, message] =
        RefusalOf(folder.Job(Named(SmallDataByPosition()), {{one.field, one.value}}));
    const bool other_name = std::string(one.field) == "task.data";
    EXPECT_EQ(kind, ErrorKind::kBadSpec);
    EXPECT_EQ(message, std::string("data ") + (other_name ? "other" : "parity") +
                           ": its file says that task." + one.said);
  }
  experiment::Job job = folder.Job(Named(SmallDataByPosition()));
  job.values.erase("task.padded");
  EXPECT_EQ(RefusalOf(job).second,
            "data parity: its file says that task.padded is true; allowed: that of the job, which "
            "has none");
}

TEST(OwnData, ChanceIsThatOfTheScoredTargetsOrOfAllInAnOlderJob) {
  const DataFolder folder;
  const catalog::Value nonzero = std::string("nonzero");
  const auto refusal = [&](const catalog::Value& scored, double chance) {
    return RefusalOf(folder.Job(Named(SmallDataByPosition()),
                                {{"task.scored_classes", scored}, {"task.chance", chance}}))
        .second;
  };
  const std::string fine = "nothing is refused";
  EXPECT_EQ(refusal(nonzero, 0.5), fine);
  EXPECT_EQ(refusal(nonzero, 0.4), fine) << "of a declaration that does not have it";
  EXPECT_THAT(refusal(nonzero, 0.45), HasSubstr("task.chance is 0.4"));
  EXPECT_THAT(refusal(std::string("all"), 0.5), HasSubstr("task.chance is 0.4"));
}

TEST(OwnData, TheSplitIsOneToTestOn) {
  const DataFolder folder;
  for (const char* split : {"long", "train"}) {
    const auto [kind, message] =
        RefusalOf(folder.Job(Named(SmallData()), {{"task.test", std::string(split)}}));
    EXPECT_EQ(kind, ErrorKind::kBadSpec);
    EXPECT_EQ(message, std::string("data parity: its file has no split ") + split +
                           " to test on; it has test");
  }
}

TEST(OwnData, AnotherFileIsRefused) {
  const DataFolder folder;
  const experiment::Job job = folder.Job(Named(SmallData()));
  const std::string& sha256 = job.Choice("task.file");
  const std::string other = SmallDataByPosition().Bytes();
  folder.WriteAs(sha256, other);
  const auto [kind, message] = RefusalOf(job);
  EXPECT_EQ(kind, ErrorKind::kBadSpec);
  EXPECT_EQ(message, "data parity: the file in --files has the SHA-256 " + Sha256Hex(other) +
                         "; allowed: " + sha256);
}

TEST(OwnData, AWrongFileIsRefusedWithItsSentence) {
  const DataFolder folder;
  DataFile wrong = Named(SmallData());
  wrong.metadata["chance"] = "2";
  const std::string bytes = wrong.Bytes();
  folder.WriteAs(Sha256Hex(bytes), bytes);
  const auto [kind, message] =
      RefusalOf(folder.Job(Named(SmallData()), {{"task.file", Sha256Hex(bytes)}}));
  EXPECT_EQ(kind, ErrorKind::kBadSpec);
  EXPECT_EQ(message, "data parity: metadata chance must be a number from 0 to 1");
}

TEST(OwnData, AMissingFileIsAnIoError) {
  {
    const DataFolder folder;
    const experiment::Job job =
        folder.Job(Named(SmallData()), {{"task.file", std::string(64, 'a')}});
    const auto [kind, message] = RefusalOf(job);
    EXPECT_EQ(kind, ErrorKind::kIo) << message;
    EXPECT_THAT(message, testing::StartsWith("data parity: cannot read "));
    EXPECT_THAT(message, HasSubstr(std::string(64, 'a')));
  }
  const experiment::Job job = SmallJob("clean", "nope", "own");
  const auto [kind, message] = RefusalOf(job);
  EXPECT_EQ(kind, ErrorKind::kIo) << "no folder was given";
  EXPECT_THAT(message, HasSubstr("--files DIR"));
}

TEST(OwnData, SequencesFitTheModel) {
  const DataFolder folder;
  const auto [kind, message] =
      RefusalOf(folder.Job(SmallData(), {{"model.max_len", std::int64_t{3}}}));
  EXPECT_EQ(kind, ErrorKind::kBadSpec);
  EXPECT_EQ(message, "task.length 4 exceeds model.max_len 3");
}

}  // namespace
}  // namespace pelab::trainer
