// Tests the reader of own data with good files. Every expected number is counted by hand.
#include "core/safetensors/task_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "tests/support/data_file.h"

namespace pelab {
namespace {

using experiment::OwnSplit;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

TaskFile ReadGood(const DataFile& file) {
  TaskFileResult result = ParseTaskFile(file.Bytes());
  EXPECT_EQ(result.problem, "");
  return std::move(result.file);
}

std::vector<std::string> SplitNames(const TaskFile& file) {
  std::vector<std::string> names;
  for (const OwnSplit& split : file.declared.splits) names.push_back(split.name);
  return names;
}

TEST(TaskFileTest, SequenceTargetsAndDefaults) {
  const TaskFile file = ReadGood(SmallData());
  const experiment::OwnTask& declared = file.declared;
  EXPECT_EQ(declared.name, "data");
  EXPECT_EQ(declared.sha256, "");
  EXPECT_EQ(declared.bytes, 0u);
  EXPECT_EQ(declared.length, 4);
  EXPECT_EQ(declared.vocabulary, 8) << "the largest token is 7";
  EXPECT_EQ(declared.classes, 2);
  EXPECT_EQ(declared.first_label, 0);
  EXPECT_FALSE(declared.by_position);
  EXPECT_FALSE(declared.padded);
  EXPECT_EQ(declared.help, "");
  ASSERT_THAT(SplitNames(file), ElementsAre("train", "test"));
  EXPECT_EQ(declared.splits[0].examples, 3);
  EXPECT_EQ(declared.splits[0].targets, 3);
  EXPECT_EQ(declared.splits[0].repeats, 0);
  EXPECT_EQ(declared.splits[0].longest, 4);
  EXPECT_DOUBLE_EQ(declared.splits[0].chance, 2.0 / 3);
  EXPECT_EQ(declared.splits[1].examples, 3);
  EXPECT_EQ(declared.splits[1].targets, 3);
  EXPECT_EQ(declared.splits[1].repeats, 0);
  EXPECT_DOUBLE_EQ(declared.splits[1].chance, 1.0 / 3);
  EXPECT_EQ(file.examples(), 6);
  EXPECT_THAT(file.tokens,
              ElementsAre(1, 2, 3, 4, 5, 6, 7, 1, 2, 2, 2, 2, 3, 1, 3, 1, 4, 4, 1, 1, 6, 5, 4, 3));
  EXPECT_THAT(file.lengths, ElementsAre(4, 4, 4, 4, 4, 4));
  EXPECT_THAT(file.targets, ElementsAre(1, 0, 1, 0, 1, 0));
  EXPECT_THAT(file.split, ElementsAre(0, 1, 0, 0, 1, 1));
  EXPECT_THAT(file.class_names, IsEmpty());
  EXPECT_THAT(file.words, IsEmpty());
}

TEST(TaskFileTest, TargetsByPositionWithLengths) {
  const TaskFile file = ReadGood(SmallDataByPosition());
  constexpr std::int32_t kNone = kNoTarget;
  EXPECT_TRUE(file.declared.by_position);
  EXPECT_TRUE(file.declared.padded);
  EXPECT_EQ(file.declared.classes, 3) << "9 and 7 stand beyond their lengths";
  EXPECT_THAT(file.lengths, ElementsAre(4, 2, 4, 3, 4, 1));
  EXPECT_THAT(file.targets,
              ElementsAre(2, kNone, 0, 2, 0, 2, kNone, kNone, kNone, kNone, 1, kNone, 2, 1, kNone,
                          kNone, kNone, 2, kNone, 1, 1, kNone, kNone, kNone));
  EXPECT_THAT(file.tokens,
              ElementsAre(1, 2, 3, 4, 5, 6, 0, 0, 2, 2, 2, 2, 3, 1, 3, 0, 4, 4, 1, 1, 6, 0, 0, 0));
  const std::vector<OwnSplit>& splits = file.declared.splits;
  EXPECT_EQ(splits[0].examples, 3);
  EXPECT_EQ(splits[0].targets, 6);
  EXPECT_DOUBLE_EQ(splits[0].chance, 3.0 / 6);
  EXPECT_EQ(splits[1].examples, 3);
  EXPECT_EQ(splits[1].targets, 5);
  EXPECT_DOUBLE_EQ(splits[1].chance, 2.0 / 5);
}

TEST(TaskFileTest, WithoutClassZeroTheBestConstantAnswerIsAnother) {
  DataFile file = SmallDataByPosition();
  const auto nonzero = [&](std::size_t split) {
    return ReadGood(file).declared.splits[split].chance_nonzero;
  };
  // The targets of train are 2 0 2 1 2 1, those of test 0 2 2 1 1.
  EXPECT_EQ(nonzero(0), 3.0 / 5);
  EXPECT_EQ(nonzero(1), 2.0 / 4);
  file.metadata["chance"] = "0.25";
  EXPECT_EQ(nonzero(0), 3.0 / 5);
  EXPECT_EQ(nonzero(1), std::nullopt) << "what the file says holds";
}

TEST(TaskFileTest, ClassZeroIsTheSmallestLabel) {
  DataFile file = SmallData();
  file.metadata["first_label"] = "-3";
  // Class 0 is the most frequent one of train, and label 0 is class 3.
  file.Set<std::int32_t>("targets", {6}, {-3, 0, -3, 0, -2, -3});
  const std::vector<OwnSplit> splits = ReadGood(file).declared.splits;
  EXPECT_EQ(splits[0].chance, 2.0 / 3);
  EXPECT_EQ(splits[0].chance_nonzero, 1.0);
  EXPECT_EQ(splits[1].chance, 1.0 / 3);
  EXPECT_EQ(splits[1].chance_nonzero, 1.0 / 2);
}

TEST(TaskFileTest, ASplitOfClassZeroAloneHasNoOtherChance) {
  DataFile file = SmallData();
  file.Set<std::int32_t>("targets", {6}, {1, 0, 1, 0, 0, 0});
  const std::vector<OwnSplit> splits = ReadGood(file).declared.splits;
  EXPECT_EQ(splits[0].chance_nonzero, 1.0);
  EXPECT_EQ(splits[1].chance_nonzero, std::nullopt);
  file.metadata["first_label"] = "-1";
  EXPECT_EQ(ReadGood(file).declared.splits[0].chance_nonzero, std::nullopt)
      << "no target is of class 0";
}

TEST(TaskFileTest, EachSplitHasItsLongestSequence) {
  DataFile file = SmallData();
  file.Set<std::int64_t>("lengths", {6}, {2, 4, 1, 3, 4, 4});  // splits 0 1 0 0 1 1
  const TaskFile read = ReadGood(file);
  EXPECT_EQ(read.declared.splits[0].longest, 3);
  EXPECT_EQ(read.declared.splits[1].longest, 4);
}

TEST(TaskFileTest, WholeLengthsAreNoPadding) {
  DataFile file = SmallData();
  file.Set<std::int64_t>("lengths", {6}, {4, 4, 4, 4, 4, 4});
  EXPECT_FALSE(ReadGood(file).declared.padded);
  file.Set<std::int64_t>("lengths", {6}, {4, 4, 4, 4, 4, 3});
  EXPECT_TRUE(ReadGood(file).declared.padded);
}

// The reader gives 0 for every position after the length of an example.
TEST(TaskFileTest, PaddingIsNotChecked) {
  DataFile file = SmallData();
  file.Set<std::int32_t>("tokens", {6, 4}, {1, 2, -3, 4000000, 5, 6, 7, 1, 2, 2, 2, 2,
                                            3, 1, 3,  1,       4, 4, 1, 1, 6, 5, 4, 3});
  file.Set<std::int32_t>("lengths", {6}, {2, 4, 4, 4, 4, 4});
  const TaskFile read = ReadGood(file);
  EXPECT_EQ(read.declared.vocabulary, 8);
  EXPECT_THAT(std::vector<std::int32_t>(read.tokens.begin(), read.tokens.begin() + 4),
              ElementsAre(1, 2, 0, 0));
}

template <typename Number>
void ExpectTheSameIn(const char* type, DType dtype = DTypeOf<Number>()) {
  SCOPED_TRACE(type);
  const DataFile small = SmallData();
  DataFile file;
  const TaskFile expected = ReadGood(small);
  file.Set<Number>("tokens", {6, 4},
                   {1, 2, 3, 4, 5, 6, 7, 1, 2, 2, 2, 2, 3, 1, 3, 1, 4, 4, 1, 1, 6, 5, 4, 3}, dtype);
  file.Set<Number>("targets", {6}, {1, 0, 1, 0, 1, 0}, dtype);
  file.Set<Number>("split", {6}, {0, 1, 0, 0, 1, 1}, dtype);
  file.Set<Number>("lengths", {6}, {4, 4, 4, 4, 4, 4}, dtype);
  const TaskFile read = ReadGood(file);
  EXPECT_EQ(read.tokens, expected.tokens);
  EXPECT_EQ(read.targets, expected.targets);
  EXPECT_EQ(read.split, expected.split);
  EXPECT_EQ(read.lengths, expected.lengths);
  EXPECT_EQ(experiment::ToJson(read.declared), experiment::ToJson(expected.declared));
}

TEST(TaskFileTest, EveryTypeOfIntegersGivesTheSame) {
  ExpectTheSameIn<std::int8_t>("I8");
  ExpectTheSameIn<std::uint8_t>("U8");
  ExpectTheSameIn<std::uint8_t>("BOOL", DType::kBool);
  ExpectTheSameIn<std::int16_t>("I16");
  ExpectTheSameIn<std::uint16_t>("U16");
  ExpectTheSameIn<std::int32_t>("I32");
  ExpectTheSameIn<std::uint32_t>("U32");
  ExpectTheSameIn<std::int64_t>("I64");
}

// 200 is negative as an I8, and 40000 as an I16.
TEST(TaskFileTest, LargeNumbersWithoutASignStayPositive) {
  DataFile file = SmallData();
  std::vector<std::uint8_t> bytes = {200, 2, 3, 4, 5, 6, 7, 1, 2, 2, 2, 2,
                                     3,   1, 3, 1, 4, 4, 1, 1, 6, 5, 4, 3};
  file.Set("tokens", {6, 4}, bytes);
  EXPECT_EQ(ReadGood(file).declared.vocabulary, 201);
  std::vector<std::uint16_t> words(bytes.begin(), bytes.end());
  words[0] = 40000;
  file.Set("tokens", {6, 4}, words);
  EXPECT_EQ(ReadGood(file).declared.vocabulary, 40001);
}

TEST(TaskFileTest, TheTrainingSplitComesFirstWhateverItsNumber) {
  DataFile file = SmallData();
  file.metadata["splits"] = R"(["long", "train", "test"])";
  file.Set<std::uint8_t>("split", {6}, {1, 2, 1, 0, 1, 0});
  const TaskFile read = ReadGood(file);
  EXPECT_THAT(SplitNames(read), ElementsAre("train", "long", "test"));
  EXPECT_THAT(read.split, ElementsAre(0, 2, 0, 1, 0, 1)) << "places in declared.splits";
  const std::vector<OwnSplit>& splits = read.declared.splits;
  EXPECT_EQ(splits[0].examples, 3);  // rows 0, 2 and 4: labels 1, 1, 1
  EXPECT_EQ(splits[1].examples, 2);  // rows 3 and 5: labels 0, 0
  EXPECT_EQ(splits[2].examples, 1);  // row 1: label 0
  EXPECT_DOUBLE_EQ(splits[0].chance, 1);
  EXPECT_DOUBLE_EQ(splits[1].chance, 0);
  EXPECT_DOUBLE_EQ(splits[2].chance, 0);

  file.metadata["splits"] = R"(["test", "long", "train"])";
  file.Set<std::uint8_t>("split", {6}, {2, 0, 2, 1, 2, 1});
  const TaskFile last = ReadGood(file);
  EXPECT_THAT(SplitNames(last), ElementsAre("train", "test", "long"));
  EXPECT_THAT(last.split, ElementsAre(0, 1, 0, 2, 0, 2));
  EXPECT_EQ(last.declared.splits[2].examples, 2);
}

TEST(TaskFileTest, MetadataTakesThePlaceOfDefaults) {
  DataFile file = SmallData();
  file.metadata = {{"name", "parity_2"},
                   {"vocabulary", "20"},
                   {"classes", "5"},
                   {"first_label", "-1"},
                   {"splits", R"(["train","other"])"},
                   {"chance", "0.25"},
                   {"class_names", R"(["a","b","","d","\u00e9"])"},
                   {"words", R"({"0":"pad","19":"open"})"},
                   {"help", "says whether"},
                   {"author", "a person"}};  // names that pelab does not know are the author's
  const TaskFile read = ReadGood(file);
  EXPECT_EQ(read.declared.name, "parity_2");
  EXPECT_EQ(read.declared.vocabulary, 20);
  EXPECT_EQ(read.declared.classes, 5);
  EXPECT_EQ(read.declared.first_label, -1);
  EXPECT_EQ(read.declared.help, "says whether");
  EXPECT_THAT(SplitNames(read), ElementsAre("train", "other"));
  EXPECT_DOUBLE_EQ(read.declared.splits[0].chance, 2.0 / 3) << "of the test splits only";
  EXPECT_DOUBLE_EQ(read.declared.splits[1].chance, 0.25);
  EXPECT_THAT(read.class_names, ElementsAre("a", "b", "", "d", "é"));
  EXPECT_THAT(read.words, ElementsAre(Pair(0, "pad"), Pair(19, "open")));
}

TEST(TaskFileTest, LabelsMayStartBelowOrAboveZero) {
  DataFile file = SmallData();
  file.Set<std::int32_t>("targets", {6}, {-1, -3, -1, 2, 2, -3});
  file.metadata["first_label"] = "-3";
  const TaskFile read = ReadGood(file);
  EXPECT_EQ(read.declared.classes, 6) << "-3 to 2";
  EXPECT_THAT(read.targets, ElementsAre(-1, -3, -1, 2, 2, -3));
  EXPECT_DOUBLE_EQ(read.declared.splits[0].chance, 2.0 / 3) << "-1 twice and 2 once";
  EXPECT_DOUBLE_EQ(read.declared.splits[1].chance, 0) << "-3, 2, -3";
  file.Set<std::int32_t>("targets", {6}, {7, 5, 9, 9, 5, 9});
  file.metadata["first_label"] = "5";
  EXPECT_EQ(ReadGood(file).declared.classes, 5) << "5 to 9";
}

TEST(TaskFileTest, OfEquallyFrequentLabelsTheSmallestIsTheGuess) {
  DataFile file = SmallData();
  file.Set<std::int32_t>("targets", {6}, {3, 1, 1, 2, 1, 3});  // training: 3, 1, 2
  EXPECT_DOUBLE_EQ(ReadGood(file).declared.splits[1].chance, 2.0 / 3) << "1, 1, 3";
}

TEST(TaskFileTest, AChanceMayBeAnyNumberFromZeroToOne) {
  DataFile file = SmallData();
  for (const auto& [text, chance] : {std::pair<const char*, double>{"0", 0},
                                     {"1", 1},
                                     {"0.5", 0.5},
                                     {"1e-3", 0.001},
                                     {"0.1", 0.1}}) {
    file.metadata["chance"] = text;
    EXPECT_EQ(ReadGood(file).declared.splits[1].chance, chance) << text;
  }
}

TEST(TaskFileTest, RepeatsAreCountedIfTheyAreAllowed) {
  DataFile file = SmallData();
  file.metadata = {{"splits", R"(["train","test","long"])"}, {"repeats", "allowed"}};
  // Training rows 0, 2 and 3; rows 4 and 5 repeat rows 0 and 3; row 1 does not repeat.
  file.Set<std::int32_t>("tokens", {6, 4},
                         {1, 2, 3, 4, 5, 6, 7, 1, 2, 2, 2, 2, 3, 1, 3, 1, 1, 2, 3, 4, 3, 1, 3, 1});
  file.Set<std::int32_t>("split", {6}, {0, 1, 0, 0, 1, 2});
  const TaskFile read = ReadGood(file);
  EXPECT_EQ(read.declared.splits[0].repeats, 0);
  EXPECT_EQ(read.declared.splits[1].repeats, 1);
  EXPECT_EQ(read.declared.splits[2].repeats, 1);
}

TEST(TaskFileTest, RowsWithinASplitMayBeEqual) {
  DataFile file = SmallData();
  file.Set<std::int32_t>("tokens", {6, 4},
                         {1, 2, 3, 4, 5, 6, 7, 1, 1, 2, 3, 4, 1, 2, 3, 4, 5, 6, 7, 1, 5, 6, 7, 1});
  EXPECT_EQ(ReadGood(file).declared.splits[1].repeats, 0);
}

// An example is its tokens up to its length: neither the padding nor zeros at the end matter.
TEST(TaskFileTest, ARepeatHasTheSameTokensAndLength) {
  DataFile file = SmallData();
  file.metadata["repeats"] = "allowed";
  file.Set<std::int32_t>("tokens", {6, 4},
                         {1, 2, 9, 9, 1, 2, 8, 8, 5, 0, 0, 0, 5, 5, 5, 5, 5, 0, 0, 0, 5, 0, 1, 1});
  file.Set<std::int32_t>("lengths", {6}, {2, 2, 4, 4, 3, 2});
  // Row 1 (1 2) repeats row 0. Rows 4 (5 0 0) and 5 (5 0) do not repeat row 2 (5 0 0 0).
  EXPECT_EQ(ReadGood(file).declared.splits[1].repeats, 1);
}

TEST(TaskFileTest, RefusedRepeatsAreTheDefaultAndMayBeNamed) {
  DataFile file = SmallData();
  file.metadata["repeats"] = "refused";
  EXPECT_EQ(ReadGood(file).declared.splits[1].repeats, 0);
}

TEST(TaskFileTest, OtherTensorsAreTheAuthors) {
  DataFile file = SmallData();
  file.Set<float>("difficulty", {6}, {1, 2, 3, 4, 5, 6});
  file.Set<std::uint64_t>("ids", {2}, {1, 2});
  EXPECT_EQ(ReadGood(file).examples(), 6);
}

// The declaration that is made of a file is one that can be read.
TEST(TaskFileTest, ALongHelpIsCutBetweenCharacters) {
  DataFile file = SmallData();
  file.metadata["help"] = std::string(299, 'a') + "éé";
  experiment::OwnTask declared = ReadGood(file).declared;
  EXPECT_EQ(declared.help, std::string(299, 'a'));
  file.metadata["help"] = std::string(298, 'a') + "éé";
  declared = ReadGood(file).declared;
  EXPECT_EQ(declared.help, std::string(298, 'a') + "é");
  EXPECT_EQ(experiment::ParseOwnTask(experiment::ToJson(declared)).problem, "");
}

TEST(TaskFileTest, TheDeclarationOfEveryGoodFileIsReadAgain) {
  for (const DataFile& file : {SmallData(), SmallDataByPosition()}) {
    const std::string json = experiment::ToJson(ReadGood(file).declared);
    const experiment::OwnTaskResult again = experiment::ParseOwnTask(json);
    EXPECT_EQ(again.problem, "");
    EXPECT_EQ(experiment::ToJson(again.task), json);
  }
}

TEST(TaskFileTest, TheLargestSizesAreAllowed) {
  DataFile file;
  std::vector<std::uint32_t> tokens(2 * 8192, 3);
  tokens[0] = 999999;
  file.Set("tokens", {2, 8192}, tokens);
  file.Set<std::uint32_t>("targets", {2}, {999999, 0});
  file.Set<std::uint8_t>("split", {2}, {0, 1});
  const TaskFile read = ReadGood(file);
  EXPECT_EQ(read.declared.length, 8192);
  EXPECT_EQ(read.declared.vocabulary, 1000000);
  EXPECT_EQ(read.declared.classes, 1000000);
}

}  // namespace
}  // namespace pelab
