// Items of documents whose data come from a file.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "core/experiment/canonical_json.h"
#include "core/experiment/sweep.h"
#include "tests/unit/core/experiment/own_data_fixture.h"

namespace pelab::experiment {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

const std::vector<Override> kDataFile = {{"file:mine.safetensors", DeclaredData()}};
const std::vector<Override> kPositionFile = {{"file:mine.safetensors", DeclaredByPosition()}};

SweepResult ParseTask(const std::string& task, const std::vector<Override>& overrides = kDataFile,
                      const std::string& rest = "") {
  return ParseSweep("name: a\npe: rope\ntask: " + task + "\n" + rest, overrides);
}

std::vector<std::string> SaidOf(const SweepResult& result) {
  std::vector<std::string> messages;
  for (const Violation& violation : result.violations) {
    messages.push_back(Format(violation, "a.yaml"));
  }
  return messages;
}

std::vector<std::string> TaskLabels(const SweepResult& result) {
  std::vector<std::string> labels;
  if (!result.sweep) return SaidOf(result);
  for (std::uint64_t i = 0; i < result.sweep->cells(); ++i) {
    if (const auto cell = result.sweep->At(i)) labels.push_back(cell->task_label);
  }
  return labels;
}

// By hand: the clean protocol's defaults, and what the declaration says.
std::string CleanSpec(const std::string& readout, const std::string& task) {
  return R"({"format":1,"model":{"activation":"relu","attention_bias":true,"d_ff":512,)"
         R"("d_model":256,"dropout":0.1,"dropout_sites":["attention","output","ffn"],)"
         R"("final_norm":true,"heads":16,"key_padding":"masked","kv_source":"self",)"
         R"("layer_norm_eps":0.00001,"layers":6,"mask":"causal","max_len":128)" +
         readout +
         R"(},"pe":{"base":10000,"input_sinusoid":false,"name":"rope","version":1},"seed":0,)"
         R"("task":)" +
         task +
         R"(,"train":{"batch_size":512,"beta1":0.98,"beta2":0.9,"epochs":100,"epsilon":1e-8,)"
         R"("lr":0.0001,"schedule":"cosine","warmup_fraction":0.06,"weight_decay":0.00001}})";
}

TEST(OwnDataItemTest, TheSplitsOfEachCell) {
  const SweepResult result =
      ParseTask("[{name: own, file: mine.safetensors, test: long}, distance]");
  ASSERT_TRUE(result.sweep.has_value()) << SaidOf(result).front();
  EXPECT_THAT(result.sweep->SplitsOf(result.sweep->At(0)->job),
              ElementsAre("train", "test", "long"));
  EXPECT_THAT(result.sweep->SplitsOf(result.sweep->At(1)->job), ElementsAre("train", "test"));
}

TEST(OwnDataItemTest, TheSpecHasWhatTheFileDeclares) {
  const SweepResult result = ParseTask("{name: own, file: mine.safetensors}");
  ASSERT_THAT(SaidOf(result), IsEmpty());
  ASSERT_EQ(result.sweep->cells(), 1u);
  const Cell cell = *result.sweep->At(0);
  EXPECT_EQ(cell.canonical_json,
            CleanSpec(R"(,"readout":"masked_mean")",
                      R"({"chance":0.5,"classes":2,"data":"parity","file":")" + kDataHash +
                          R"(","first_label":0,"label_space":"exact","length":64,"name":"own",)"
                          R"("padded":true,"scored_classes":"all","targets":"sequence",)"
                          R"("test":"test","test_examples":500,"train_examples":2000,"version":1,)"
                          R"("vocabulary":20})"));
  EXPECT_EQ(cell.task_label, "own:parity");
  EXPECT_EQ(cell.protocol_label, "clean");
  EXPECT_EQ(TaskOfLabel(cell.task_label), "own");
  EXPECT_EQ(ChanceAccuracy(cell.job), 0.5);
  EXPECT_EQ(ScoredClasses(cell.job), 2);
  const CanonicalResult read = FromCanonicalJson(cell.canonical_json);
  ASSERT_TRUE(read.job.has_value()) << read.violations.front().message;
  EXPECT_EQ(ToCanonicalJson(*read.job), cell.canonical_json);
}

TEST(OwnDataItemTest, WithTargetsByPositionThereIsNoReadOut) {
  const SweepResult result =
      ParseTask("{name: own, file: mine.safetensors, test: test}", kPositionFile);
  ASSERT_THAT(SaidOf(result), IsEmpty());
  const Cell cell = *result.sweep->At(0);
  EXPECT_EQ(cell.canonical_json,
            CleanSpec("", R"({"chance":0.5,"classes":2,"data":"parity","file":")" + kDataHash +
                              R"(","first_label":0,"label_space":"exact","length":64,)"
                              R"("name":"own","padded":true,"scored_classes":"all",)"
                              R"("targets":"position","test":"test","test_examples":500,)"
                              R"("test_targets":20000,"train_examples":2000,)"
                              R"("train_targets":90000,"version":1,"vocabulary":20})"));
  EXPECT_EQ(cell.protocol_label, "clean") << "a read-out that is absent is no difference";
  const CanonicalResult read = FromCanonicalJson(cell.canonical_json);
  ASSERT_TRUE(read.job.has_value()) << read.violations.front().message;
  EXPECT_FALSE(read.job->HasField("model.readout"));
  EXPECT_EQ(ToCanonicalJson(*read.job), cell.canonical_json);
}

TEST(OwnDataItemTest, AReadOutIsForTheOtherTasks) {
  const SweepResult result =
      ParseTask("[distance, {name: own, file: mine.safetensors}]", kPositionFile,
                "model: {readout: last}\naxes: {train.epochs: [1, 2]}\n");
  ASSERT_THAT(SaidOf(result), IsEmpty());
  EXPECT_THAT(TaskLabels(result), ElementsAre("distance", "own:parity", "distance", "own:parity"));
  EXPECT_EQ(result.sweep->At(0)->job.Choice("model.readout"), "last");
  EXPECT_FALSE(result.sweep->At(1)->job.HasField("model.readout"));
  // An axis of read-outs gives one job of the data.
  const SweepResult axis = ParseTask("[distance, {name: own, file: mine.safetensors}]",
                                     kPositionFile, "axes: {model.readout: [last, mean]}\n");
  EXPECT_THAT(TaskLabels(axis), ElementsAre("distance", "own:parity", "distance"));
}

TEST(OwnDataItemTest, AReadOutThatNoTaskHasIsReported) {
  EXPECT_THAT(SaidOf(ParseTask("{name: own, file: mine.safetensors}", kPositionFile,
                               "axes: {model.readout: [last, mean]}\n")),
              ElementsAre(HasSubstr("model.readout")));
}

TEST(OwnDataItemTest, TestNamesOneOrSeveralSplits) {
  EXPECT_THAT(TaskLabels(ParseTask("{name: own, file: mine.safetensors, test: long}")),
              ElementsAre("own:parity(test=long)"));
  const SweepResult both = ParseTask("{name: own, file: mine.safetensors, test: [test, long]}");
  EXPECT_THAT(TaskLabels(both), ElementsAre("own:parity", "own:parity(test=long)"));
  const Job job = both.sweep->At(1)->job;
  EXPECT_EQ(job.Choice("task.test"), "long");
  EXPECT_EQ(job.Int("task.test_examples"), 300);
  EXPECT_EQ(ChanceAccuracy(job), 0.25);
  EXPECT_EQ(TaskOfLabel(both.sweep->At(1)->task_label), "own");
}

TEST(OwnDataItemTest, FieldsOfTheLabelsStandBesideTheFile) {
  const SweepResult result = ParseTask(
      "{name: own, file: mine.safetensors, scored_classes: [all, nonzero], test: [test, long], "
      "label_space: vocabulary}");
  ASSERT_THAT(SaidOf(result), IsEmpty());
  ASSERT_EQ(result.sweep->cells(), 4u);
  std::set<std::string> made;
  for (std::uint64_t i = 0; i < 4; ++i) {
    const Job job = result.sweep->At(i)->job;
    EXPECT_EQ(job.Choice("task.label_space"), "vocabulary");
    made.insert(job.Choice("task.scored_classes") + " " + job.Choice("task.test"));
  }
  EXPECT_THAT(made, ElementsAre("all long", "all test", "nonzero long", "nonzero test"));
}

TEST(OwnDataItemTest, TwoFilesAndAGeneratedTaskStandSideBySide) {
  std::vector<Override> files = kDataFile;
  files.push_back({"file:b/other.npz", DeclaredData("name", R"("other")")});
  const SweepResult result = ParseTask(
      "[{name: own, file: mine.safetensors}, counting, {name: own, file: b/other.npz, test: long}]",
      files);
  EXPECT_THAT(TaskLabels(result), ElementsAre("own:parity", "counting", "own:other(test=long)"));
}

TEST(OwnDataItemTest, TheKeyIsThatOfTheFileAndItsSplitNotOfThePath) {
  const auto key = [](const std::string& task, const std::vector<Override>& files = kDataFile) {
    const SweepResult result = ParseTask(task, files);
    return result.sweep ? result.sweep->At(0)->key : SaidOf(result).front();
  };
  const std::string own = key("{name: own, file: mine.safetensors}");
  EXPECT_EQ(key("{name: own, file: mine.safetensors, test: test}"), own);
  EXPECT_EQ(key("{name: own, file: ../b}", {{"file:../b", DeclaredData()}}), own);
  EXPECT_NE(key("{name: own, file: mine.safetensors, test: long}"), own);
  const auto with = [&](const char* member, const std::string& text) {
    return key("{name: own, file: mine.safetensors}",
               {{"file:mine.safetensors", DeclaredData(member, text)}});
  };
  EXPECT_EQ(with("help", R"("in other words")"), own);
  EXPECT_EQ(with("bytes", "77"), own);
  EXPECT_NE(with("sha256", "\"" + std::string(64, 'b') + "\""), own);
  EXPECT_NE(with("name", R"("other")"), own);
}

TEST(OwnDataItemTest, WorksUnderThePublishedProtocol) {
  const SweepResult result =
      ParseTask("{name: own, file: mine.safetensors}", kDataFile, "protocol: published\n");
  ASSERT_THAT(SaidOf(result), IsEmpty());
  const Cell cell = *result.sweep->At(0);
  EXPECT_EQ(cell.protocol_label, "published");
  EXPECT_EQ(cell.job.Choice("task.label_space"), "vocabulary");
  EXPECT_EQ(cell.job.Choice("task.scored_classes"), "nonzero");
  EXPECT_EQ(cell.job.Choice("model.readout"), "mean");
  EXPECT_FALSE(cell.job.HasField("task.definition"));
  EXPECT_FALSE(cell.job.HasField("task.split"));
  EXPECT_FALSE(cell.job.HasField("task.data_seed"));
  EXPECT_EQ(ScoredClasses(cell.job), 1) << "class 0 is not scored";
  EXPECT_EQ(ChanceAccuracy(cell.job), 0.5) << "as the file says";
  const SweepResult negative = ParseTask(
      "{name: own, file: mine.safetensors}",
      {{"file:mine.safetensors", DeclaredData("first_label", "-1")}}, "protocol: published\n");
  EXPECT_THAT(SaidOf(negative), ElementsAre(HasSubstr("(constraint labels-are-ids)")));
  const SweepResult beyond = ParseTask("{name: own, file: mine.safetensors}",
                                       {{"file:mine.safetensors", DeclaredData("classes", "21")}},
                                       "protocol: published\n");
  EXPECT_THAT(SaidOf(beyond), ElementsAre(HasSubstr("(constraint labels-fit)")));
}

// Chance among the scored examples is that of the declaration; without it, keys are as before.
TEST(OwnDataItemTest, ChanceIsThatOfTheScoredExamples) {
  std::string declared = DeclaredData("classes", "3");
  const std::string before = declared;
  declared.replace(declared.find("\"chance\":0.5,"), 13, "\"chance\":0.5,\"chance_nonzero\":0.75,");
  const auto cell = [](const std::string& json, const std::string& settings,
                       const std::string& more = "") {
    const SweepResult result = ParseTask("{name: own, file: mine.safetensors" + settings + "}",
                                         {{"file:mine.safetensors", json}}, more);
    EXPECT_THAT(SaidOf(result), IsEmpty());
    return *result.sweep->At(0);
  };
  const std::string nonzero = ", scored_classes: nonzero";
  EXPECT_EQ(ChanceAccuracy(cell(declared, nonzero).job), 0.75);
  EXPECT_EQ(ChanceAccuracy(cell(declared, nonzero + ", test: long").job), 0.25);
  EXPECT_EQ(ChanceAccuracy(cell(before, nonzero).job), 0.5);
  EXPECT_EQ(ChanceAccuracy(cell(declared, "").job), 0.5);
  EXPECT_EQ(cell(declared, "").key, cell(before, "").key);
  const Cell published = cell(declared, "", "protocol: published\n");
  EXPECT_EQ(published.job.Choice("task.scored_classes"), "nonzero");
  EXPECT_EQ(ChanceAccuracy(published.job), 0.75) << "the protocol decides what is scored";
  // Labels from 1 on have no class 0 if labels are classes.
  declared.replace(declared.find("\"first_label\":0"), 15, "\"first_label\":1");
  EXPECT_EQ(ChanceAccuracy(cell(declared, nonzero).job), 0.75);
  EXPECT_EQ(ChanceAccuracy(cell(declared, nonzero + ", label_space: vocabulary").job), 0.5);
}

TEST(OwnDataItemTest, TheModelMustHaveThePositions) {
  EXPECT_THAT(
      SaidOf(ParseTask("{name: own, file: mine.safetensors}", kDataFile, "model: {max_len: 63}\n")),
      ElementsAre(HasSubstr("task.length")));
}

TEST(OwnDataItemTest, ErrorsNameThePlaceAndWhatIsAllowed) {
  const auto said = [](const std::string& task, const std::vector<Override>& files = kDataFile,
                       const std::string& rest = "") {
    const std::vector<std::string> messages = SaidOf(ParseTask(task, files, rest));
    EXPECT_THAT(messages, testing::SizeIs(1)) << task;
    return messages.empty() ? "" : messages.front();
  };
  const std::string file = "{name: own, file: mine.safetensors";
  EXPECT_THAT(said("own"), StartsWith("a.yaml:3:7: "));
  EXPECT_THAT(said("{name: own}"), HasSubstr("{name: own, file: mine.safetensors}"));
  EXPECT_THAT(said("{name: own, file: [a, b]}"),
              StartsWith("a.yaml:3:25: task.file must be the path of a file, relative to this "
                         "document, not "));
  EXPECT_THAT(said("{name: own, file: yours.safetensors}"),
              StartsWith("a.yaml:3:25: the file \"yours.safetensors\" did not come with this "
                         "document"));
  EXPECT_EQ(said(file + ", test: tset}"),
            "a.yaml:3:49: task.test must be one of test, long, a split of parity, not \"tset\"");
  EXPECT_EQ(said(file + ", test: train}"),
            "a.yaml:3:49: task.test must be one of test, long, a split of parity, not \"train\"");
  EXPECT_EQ(said(file + ", test: [long, train]}"),
            "a.yaml:3:56: task.test[1] must be one of test, long, a split of parity, not "
            "\"train\"");
  EXPECT_EQ(said(file + ", test: [test, long, test]}"), "a.yaml:3:62: split test is there twice");
  EXPECT_THAT(said(file + ", test: {a: b}}"),
              StartsWith("a.yaml:3:49: task.test must be one of test, long, a split of parity"));
  EXPECT_THAT(said(file + ", test: []}"), HasSubstr("is an empty list"));
  const std::string allowed = "file, label_space, scored_classes, test";
  for (const char* field : {"length", "classes", "chance", "targets", "train_examples"}) {
    EXPECT_EQ(said(file + ", " + field + ": 3}"),
              std::string("a.yaml:3:43: task.") + field +
                  " cannot be set: it is what the file holds; allowed here: " + allowed);
  }
  for (const char* field : {"split", "definition", "data_seed"}) {
    EXPECT_EQ(said(file + ", " + field + ": 3}"),
              std::string("a.yaml:3:43: task.") + field +
                  " is for data that pelab generates; allowed here: " + allowed);
  }
  EXPECT_EQ(said(file + ", tests: long}"),
            "a.yaml:3:43: unknown key of own data \"tests\"; did you mean test? known: " + allowed);
  EXPECT_EQ(said(file + ", scored_classes: [all, zero]}"),
            "a.yaml:3:65: task.scored_classes must be one of all, nonzero, not \"zero\"");
  EXPECT_THAT(said("distanse"), HasSubstr("did you mean distance?"));
  EXPECT_THAT(said("sorting"), HasSubstr("your own data is {name: own, file: mine.safetensors}"));
}

TEST(OwnDataItemTest, DataWithoutASplitNamedTestNeedsAName) {
  const std::string splits =
      R"([{"name":"train","examples":9,"targets":9,"chance":0.5,"repeats":0},
          {"name":"short","examples":9,"targets":9,"chance":0.5,"repeats":0},
          {"name":"long","examples":9,"targets":9,"chance":0.5,"repeats":0}])";
  const std::vector<Override> file = {{"file:mine.safetensors", DeclaredData("splits", splits)}};
  EXPECT_THAT(SaidOf(ParseTask("{name: own, file: mine.safetensors}", file)),
              ElementsAre("a.yaml:3:7: the data parity has no split named test; say which to test "
                          "on with test: short (allowed: short, long)"));
  EXPECT_THAT(TaskLabels(ParseTask("{name: own, file: mine.safetensors, test: short}", file)),
              ElementsAre("own:parity(test=short)"));
}

TEST(OwnDataItemTest, WhatTheFileHoldsCannotBeSetElsewhere) {
  const std::string own = "{name: own, file: mine.safetensors}";
  const auto set = [&](const char* field, const char* value, const std::string& task) {
    std::vector<Override> overrides = kDataFile;
    overrides.push_back({field, value});
    return SaidOf(ParseTask(task, overrides));
  };
  const std::string held = " cannot be set for task: it is what the file holds";
  EXPECT_THAT(set("task.length", "32", own), ElementsAre(HasSubstr("task.length" + held)));
  EXPECT_THAT(set("task.train_examples", "9", own),
              ElementsAre(HasSubstr("task.train_examples" + held)));
  EXPECT_THAT(set("task.vocabulary", "99", "[distance, " + own + "]"),
              ElementsAre(HasSubstr("task.vocabulary cannot be set for task[1]: it is what the "
                                    "file holds")));
  const std::string declares =
      " is what a file of data declares; the split to test on stands beside the file: {name: own, "
      "file: mine.safetensors, test: [test, long]}";
  EXPECT_THAT(set("task.file", kDataHash.c_str(), own),
              ElementsAre(HasSubstr("task.file" + declares)));
  EXPECT_THAT(set("task.chance", "1", own), ElementsAre(HasSubstr("task.chance" + declares)));
  EXPECT_THAT(set("task.test", "long", own), ElementsAre(HasSubstr("task.test" + declares)));
  EXPECT_THAT(SaidOf(ParseTask(own, kDataFile, "axes: {task.classes: [2, 3]}\n")),
              ElementsAre(HasSubstr("task.classes" + declares)));
  // Fields that the file does not hold can be set.
  EXPECT_THAT(set("task.label_space", "vocabulary", own), IsEmpty());
  EXPECT_THAT(set("train.epochs", "3", own), IsEmpty());
}

TEST(OwnDataItemTest, AnAxisOfWhatTheFileHoldsIsRefused) {
  const std::vector<std::string> said = SaidOf(ParseTask(
      "{name: own, file: mine.safetensors}", kDataFile, "axes: {task.length: [32, 64]}\n"));
  ASSERT_THAT(said, testing::SizeIs(1));
  EXPECT_THAT(said[0], HasSubstr("task.length"));
}

TEST(OwnDataItemTest, DataStandsUnderTaskAndAnEncodingUnderPe) {
  const std::string encoding =
      R"({"format":1,"kind":"encoding","name":"decay","sha256":")" + std::string(64, 'e') +
      R"(","bytes":7,"methods":["angles"],"causal_only":false,"options":[]})";
  EXPECT_THAT(SaidOf(ParseTask("{name: own, file: mine.pt}", {{"file:mine.pt", encoding}})),
              ElementsAre("a.yaml:3:7: the file of this task holds an encoding, not data; an "
                          "encoding stands under pe"));
  EXPECT_THAT(SaidOf(ParseSweep("name: a\npe: {name: own, file: mine.safetensors}\n"
                                "task: distance\n",
                                kDataFile)),
              ElementsAre("a.yaml:2:5: the file of this pe holds data, not an encoding; data "
                          "stands under task"));
  // Each in its place.
  std::vector<Override> both = kDataFile;
  both.push_back({"file:mine.pt", encoding});
  const SweepResult result = ParseSweep(
      "name: a\npe: {name: own, file: mine.pt}\ntask: {name: own, file: mine.safetensors}\n", both);
  ASSERT_THAT(SaidOf(result), IsEmpty());
  EXPECT_EQ(result.sweep->At(0)->pe_label, "own:decay");
  EXPECT_EQ(result.sweep->At(0)->task_label, "own:parity");
  const std::string spec = result.sweep->At(0)->canonical_json;
  EXPECT_THAT(spec, HasSubstr(R"("pe":{"causal_only":false,"encoding":"decay","file":"eee)"));
  EXPECT_THAT(spec, HasSubstr(R"("task":{"chance":0.5,"classes":2,"data":"parity","file":"ddd)"));
  const CanonicalResult read = FromCanonicalJson(spec);
  ASSERT_TRUE(read.job.has_value()) << read.violations.front().message;
  EXPECT_EQ(ToCanonicalJson(*read.job), spec);
}

TEST(OwnDataItemTest, ADeclarationThatIsWrongIsReportedOnce) {
  EXPECT_THAT(SaidOf(ParseTask("{name: own, file: mine.safetensors}",
                               {{"file:mine.safetensors", DeclaredData("length", "1")}})),
              ElementsAre(HasSubstr("mine.safetensors: the declaration.length must be an integer "
                                    "from 2 to 8192")));
  EXPECT_THAT(SaidOf(ParseTask("{name: own, file: mine.safetensors}",
                               {{"file:mine.safetensors", DeclaredData("sha256", "")}})),
              ElementsAre(HasSubstr("mine.safetensors: the declaration lacks the file's sha256")));
}

TEST(OwnDataItemTest, ExcludeRulesNameOwnData) {
  EXPECT_THAT(TaskLabels(ParseTask("[distance, {name: own, file: mine.safetensors}]", kDataFile,
                                   "exclude: [{task: own}]\n")),
              ElementsAre("distance"));
}

}  // namespace
}  // namespace pelab::experiment
