// Declarations of data from files.
#include "core/experiment/own_task.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <variant>

#include "core/experiment/declaration.h"
#include "tests/unit/core/experiment/own_data_fixture.h"

namespace pelab::experiment {
namespace {

using testing::StartsWith;

TEST(OwnTaskTest, IsReadAndWrittenAgain) {
  const OwnTaskResult read = ParseOwnTask(DeclaredData());
  ASSERT_EQ(read.problem, "");
  const OwnTask& task = read.task;
  EXPECT_EQ(task.name, "parity");
  EXPECT_EQ(task.sha256, kDataHash);
  EXPECT_EQ(task.bytes, 5000u);
  EXPECT_EQ(task.length, 64);
  EXPECT_EQ(task.vocabulary, 20);
  EXPECT_EQ(task.classes, 2);
  EXPECT_EQ(task.first_label, 0);
  EXPECT_FALSE(task.by_position);
  EXPECT_TRUE(task.padded);
  EXPECT_EQ(task.help, "odd or even");
  ASSERT_EQ(task.splits.size(), 3u);
  EXPECT_EQ(task.splits[2].name, "long");
  EXPECT_EQ(task.splits[2].examples, 300);
  EXPECT_EQ(task.splits[2].targets, 300);
  EXPECT_EQ(task.splits[2].chance, 0.25);
  EXPECT_EQ(task.splits[2].repeats, 12);
  EXPECT_EQ(task.Find("long"), &task.splits[2]);
  EXPECT_EQ(task.Find("lon"), nullptr);
  EXPECT_EQ(task.TestSplits(), "test, long");
  EXPECT_EQ(ToJson(task),
            R"({"format":1,"kind":"task","name":"parity","sha256":")" + kDataHash +
                R"(","bytes":5000,"length":64,"vocabulary":20,"classes":2,"first_label":0,)"
                R"("targets":"sequence","padded":true,"splits":[)"
                R"({"name":"train","examples":2000,"targets":2000,"chance":0.505,"repeats":0},)"
                R"({"name":"test","examples":500,"targets":500,"chance":0.5,"repeats":0},)"
                R"({"name":"long","examples":300,"targets":300,"chance":0.25,"repeats":12}],)"
                R"("help":"odd or even"})");
  const OwnTaskResult again = ParseOwnTask(ToJson(task));
  ASSERT_EQ(again.problem, "");
  EXPECT_EQ(ToJson(again.task), ToJson(task));
}

TEST(OwnTaskTest, HashSizeAndHelpMayBeAbsent) {
  for (const char* member : {"sha256", "bytes", "help", "padded"}) {
    const OwnTaskResult read = ParseOwnTask(DeclaredData(member, ""));
    ASSERT_EQ(read.problem, "") << member;
    const std::string json = ToJson(read.task);
    EXPECT_EQ(json.find(std::string("\"") + member + "\"") == std::string::npos,
              std::string(member) != "padded");
    EXPECT_EQ(ToJson(ParseOwnTask(json).task), json);
  }
  EXPECT_FALSE(ParseOwnTask(DeclaredData("padded", "")).task.padded);
}

// Older declarations do not have it.
TEST(OwnTaskTest, TheChanceWithoutClassZeroMayBeThere) {
  std::string json = DeclaredData();
  EXPECT_EQ(ParseOwnTask(json).task.splits[1].chance_nonzero, std::nullopt);
  json.replace(json.find("\"chance\":0.5,"), 13, "\"chance\":0.5,\"chance_nonzero\":0.75,");
  const OwnTaskResult read = ParseOwnTask(json);
  ASSERT_EQ(read.problem, "");
  EXPECT_EQ(read.task.splits[1].chance_nonzero, 0.75);
  EXPECT_EQ(read.task.splits[2].chance_nonzero, std::nullopt);
  EXPECT_EQ(ToJson(ParseOwnTask(ToJson(read.task)).task), ToJson(read.task));
  json.replace(json.find("0.75"), 4, "1.75");
  EXPECT_EQ(ParseOwnTask(json).problem, "split test.chance_nonzero must be from 0 to 1");
}

// Older declarations do not have it, and no field of a job depends on it.
TEST(OwnTaskTest, TheLongestSequenceOfASplitMayBeThere) {
  const OwnTask older = ParseOwnTask(DeclaredData()).task;
  EXPECT_EQ(older.splits[2].longest, 0);
  std::string json = DeclaredData();
  const std::string repeats = "\"repeats\":12";
  const std::size_t end = json.find(repeats) + repeats.size();
  const auto with = [&](const std::string& value) {
    std::string changed = json;
    return ParseOwnTask(changed.insert(end, ",\"longest\":" + value));
  };
  const OwnTaskResult read = with("64");
  ASSERT_EQ(read.problem, "");
  EXPECT_EQ(read.task.splits[2].longest, 64);
  EXPECT_EQ(FieldsOf(read.task, read.task.splits[2]), FieldsOf(older, older.splits[2]));
  EXPECT_EQ(ToJson(ParseOwnTask(ToJson(read.task)).task), ToJson(read.task));
  EXPECT_NE(ToJson(read.task), ToJson(older));
  for (const char* wrong : {"0", "65", "-1", "1e3", "3.5", "\"64\"", "null", "[64]"}) {
    EXPECT_EQ(with(wrong).problem, "split long.longest must be an integer from 1 to 64") << wrong;
  }
}

TEST(OwnTaskTest, EverySplitHasItsFields) {
  const OwnTask task = ParseOwnTask(DeclaredByPosition()).task;
  const auto text = [](const char* value) { return catalog::Value(std::string(value)); };
  const auto whole = [](std::int64_t value) { return catalog::Value(value); };
  EXPECT_EQ(FieldsOf(task, task.splits[1]), (catalog::Values{{"task.data", text("parity")},
                                                             {"task.file", kDataHash},
                                                             {"task.test", text("test")},
                                                             {"task.targets", text("position")},
                                                             {"task.length", whole(64)},
                                                             {"task.vocabulary", whole(20)},
                                                             {"task.classes", whole(2)},
                                                             {"task.first_label", whole(0)},
                                                             {"task.padded", true},
                                                             {"task.chance", 0.5},
                                                             {"task.train_examples", whole(2000)},
                                                             {"task.test_examples", whole(500)},
                                                             {"task.train_targets", whole(90000)},
                                                             {"task.test_targets", whole(20000)}}));
  const OwnTask sequence = ParseOwnTask(DeclaredData()).task;
  const catalog::Values of_long = FieldsOf(sequence, sequence.splits[2]);
  EXPECT_EQ(of_long.at("task.test"), text("long"));
  EXPECT_EQ(of_long.at("task.test_examples"), whole(300));
  EXPECT_EQ(of_long.at("task.chance"), catalog::Value(0.25));
  EXPECT_EQ(of_long.count("task.test_targets"), 0u);
}

TEST(OwnTaskTest, SaysWhatIsWrong) {
  const auto problem = [](const std::string& member, const std::string& text) {
    return ParseOwnTask(DeclaredData(member, text)).problem;
  };
  const std::string rule =
      " must be a lower-case letter, then up to 39 lower-case letters, digits or underscores";
  EXPECT_EQ(ParseOwnTask("").problem, "the declaration is not a JSON object");
  EXPECT_EQ(ParseOwnTask("[]").problem, "the declaration is not a JSON object");
  EXPECT_EQ(ParseOwnTask(std::string(kMaxDeclarationBytes + 1, ' ')).problem,
            "the declaration has 65537 bytes; at most 65536 are allowed");
  EXPECT_EQ(problem("format", "2"), "the declaration's format must be 1");
  EXPECT_EQ(problem("format", ""), "the declaration's format must be 1");
  EXPECT_EQ(problem("kind", R"("encoding")"), "the declaration's kind must be \"task\"");
  EXPECT_EQ(problem("name", R"("Parity")"), "the task's name \"Parity\"" + rule);
  EXPECT_EQ(problem("name", ""), "the task's name \"\"" + rule);
  EXPECT_EQ(problem("name", "5"), "the declaration.name must be text of at most 100 bytes");
  EXPECT_EQ(problem("sha256", R"("ab")"),
            "the declaration's sha256 must be 64 hexadecimal digits in lower case");
  for (const char* bytes : {"-1", "1.5", "1073741825", "\"1\""}) {
    EXPECT_EQ(problem("bytes", bytes),
              "the declaration's bytes must be an integer of at most 1073741824")
        << bytes;
  }
  EXPECT_EQ(problem("bytes", "1073741824"), "");
  const std::string length = "the declaration.length must be an integer from 2 to 8192";
  for (const char* wrong : {"", "1", "8193", "64.0", "\"64\"", "true", "null", "1e3"}) {
    EXPECT_EQ(problem("length", wrong), length) << wrong;
  }
  EXPECT_EQ(problem("vocabulary", "7"),
            "the declaration.vocabulary must be an integer from 8 to 1000000");
  EXPECT_EQ(problem("classes", "0"),
            "the declaration.classes must be an integer from 1 to 1000000");
  EXPECT_EQ(problem("first_label", "-1000001"),
            "the declaration.first_label must be an integer from -1000000 to 1000000");
  EXPECT_EQ(problem("targets", R"("token")"),
            "the declaration's targets must be sequence or position, not \"token\"");
  EXPECT_EQ(problem("targets", ""),
            "the declaration's targets must be sequence or position, not \"\"");
  EXPECT_EQ(problem("targets", "2"), "the declaration.targets must be text of at most 20 bytes");
  EXPECT_EQ(problem("padded", "1"), "the declaration.padded must be true or false");
  EXPECT_EQ(problem("help", "\"" + std::string(301, 'a') + "\""),
            "the declaration.help must be text of at most 300 bytes");
  EXPECT_EQ(problem("lenght", "64"),
            "the declaration has an unknown member \"lenght\"; did you mean length?");
  EXPECT_EQ(problem("methods", "[]"), "the declaration has an unknown member \"methods\"");
}

TEST(OwnTaskTest, SaysWhatIsWrongWithASplit) {
  const std::string train = R"({"name":"train","examples":9,"targets":9,"chance":0,"repeats":0})";
  const auto problem = [&](const std::string& second) {
    return ParseOwnTask(DeclaredData("splits", "[" + train + "," + second + "]")).problem;
  };
  ASSERT_EQ(problem(R"({"name":"test","examples":9,"targets":9,"chance":1,"repeats":9})"), "");
  const std::string two = "the declaration's splits must be a list of 2 to 32";
  std::string many = train;
  for (int i = 0; i < 32; ++i) {
    many += R"(,{"name":"s)" + std::to_string(i) +
            R"(","examples":9,"targets":9,"chance":0,"repeats":0})";
  }
  for (const std::string& wrong :
       {std::string(), std::string("{}"), std::string("[]"), "[" + train + "]", "[" + many + "]"}) {
    EXPECT_EQ(ParseOwnTask(DeclaredData("splits", wrong)).problem, two);
  }
  const std::string first = R"([{"name":"test","examples":9,"targets":9,"chance":0,"repeats":0},)";
  EXPECT_EQ(ParseOwnTask(DeclaredData("splits", first + train + "]")).problem,
            "the declaration's first split must be train");
  const std::pair<const char*, const char*> splits[] = {
      {"5", "a split of the declaration is not an object"},
      {R"({"examples":9})",
       "a split's name \"\" must be a lower-case letter, then up to 39 lower-case letters, digits "
       "or underscores"},
      {R"({"name":1})", "a split.name must be text of at most 100 bytes"},
      {R"({"name":"train","examples":9,"targets":9,"chance":0,"repeats":0})",
       "split train is declared twice"},
      {R"({"name":"test","example":9})",
       "split test has an unknown member \"example\"; did you mean examples?"},
      {R"({"name":"test","targets":9,"chance":0,"repeats":0})",
       "split test.examples must be an integer from 1 to 2000000000"},
      {R"({"name":"test","examples":0,"targets":9,"chance":0,"repeats":0})",
       "split test.examples must be an integer from 1 to 2000000000"},
      {R"({"name":"test","examples":2000000001,"targets":9,"chance":0,"repeats":0})",
       "split test.examples must be an integer from 1 to 2000000000"},
      {R"({"name":"test","examples":9,"targets":0,"chance":0,"repeats":0})",
       "split test.targets must be an integer from 1 to 2000000000"},
      {R"({"name":"test","examples":9,"targets":9,"chance":0,"repeats":10})",
       "split test.repeats must be an integer from 0 to 9"},
      {R"({"name":"test","examples":9,"targets":9,"chance":0,"repeats":-1})",
       "split test.repeats must be an integer from 0 to 9"},
      {R"({"name":"test","examples":9,"targets":9,"repeats":0})",
       "split test.chance must be a number"},
      {R"({"name":"test","examples":9,"targets":9,"chance":"1","repeats":0})",
       "split test.chance must be a number"},
      {R"({"name":"test","examples":9,"targets":9,"chance":1.01,"repeats":0})",
       "split test.chance must be from 0 to 1"},
      {R"({"name":"test","examples":9,"targets":9,"chance":-0.01,"repeats":0})",
       "split test.chance must be from 0 to 1"},
      {R"({"name":"test","examples":9,"targets":9,"chance":1e300,"repeats":0})",
       "split test.chance must be between -1e15 and 1e15"},
  };
  for (const auto& [json, said] : splits) EXPECT_EQ(problem(json), said) << json;
}

TEST(DeclarationTest, ItsKindSaysWhatItIs) {
  const DeclarationResult task = ParseDeclaration(DeclaredData());
  ASSERT_EQ(task.problem, "");
  ASSERT_TRUE(std::holds_alternative<OwnTask>(task.declaration));
  EXPECT_EQ(Sha256Of(task.declaration), kDataHash);
  EXPECT_EQ(BytesOf(task.declaration), 5000u);
  EXPECT_EQ(ToJson(task.declaration), ToJson(std::get<OwnTask>(task.declaration)));
  const std::string json = R"({"format":1,"kind":"encoding","name":"decay","sha256":")" +
                           std::string(64, 'e') +
                           R"(","bytes":7,"methods":["angles"],"causal_only":false,"options":[]})";
  const DeclarationResult encoding = ParseDeclaration(json);
  ASSERT_EQ(encoding.problem, "");
  ASSERT_TRUE(std::holds_alternative<OwnEncoding>(encoding.declaration));
  EXPECT_EQ(Sha256Of(encoding.declaration), std::string(64, 'e'));
  EXPECT_EQ(BytesOf(encoding.declaration), 7u);
  EXPECT_EQ(ToJson(encoding.declaration), json);
}

TEST(DeclarationTest, WhatHasNoKnownKindIsReadAsAnEncoding) {
  EXPECT_EQ(ParseDeclaration(DeclaredData("length", "1")).problem,
            "the declaration.length must be an integer from 2 to 8192");
  EXPECT_EQ(ParseDeclaration("").problem, "the declaration is not a JSON object");
  EXPECT_EQ(ParseDeclaration("[1]").problem, "the declaration is not a JSON object");
  for (const char* kind : {"", "5", R"("data")", R"(["task"])"}) {
    EXPECT_THAT(ParseDeclaration(DeclaredData("kind", kind)).problem, StartsWith("the declaration"))
        << kind;
  }
}

}  // namespace
}  // namespace pelab::experiment
