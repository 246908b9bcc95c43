#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "core/experiment/analysis.h"
#include "core/experiment/canonical_json.h"
#include "core/experiment/job.h"
#include "core/experiment/violation.h"

namespace pelab::experiment {
namespace {

using catalog::Values;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using Json = nlohmann::json;

std::string ReadSource(const std::string& path) {
  std::ifstream file(std::string(PELAB_SOURCE_DIR) + "/" + path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

// The example of docs/formats.md without its white space (none of it is inside a string).
std::string DocumentedExample() {
  const std::string page = ReadSource("docs/formats.md");
  const std::size_t start = page.find("{\"format\":1");
  const std::size_t end = page.find("```", start);
  std::string example = page.substr(start, end - start);
  example.erase(
      std::remove_if(example.begin(), example.end(), [](char c) { return c == ' ' || c == '\n'; }),
      example.end());
  return example;
}

std::vector<std::string> Messages(const std::vector<Violation>& violations) {
  std::vector<std::string> messages;
  for (const Violation& violation : violations) messages.push_back(violation.message);
  return messages;
}

TEST(Canonical, TheDocumentedExampleByteForByte) {
  EXPECT_EQ(ToCanonicalJson(MakeJob("clean", "rope", "distance", 0)), DocumentedExample());
}

TEST(Canonical, EveryDefaultJobComesBackTheSame) {
  for (const catalog::Entry& protocol : catalog::Protocols()) {
    for (const catalog::Entry& pe : catalog::Pes()) {
      for (const catalog::Entry& task : catalog::Tasks()) {
        const Job job = MakeJob(protocol.name, pe.name, task.name, 9007199254740991);
        const std::string json = ToCanonicalJson(job);
        if (!CheckJob(job).empty()) continue;  // published xpos: there is no such job
        const CanonicalResult back = FromCanonicalJson(json);
        ASSERT_TRUE(back.job) << testing::PrintToString(Messages(back.violations));
        EXPECT_EQ(ToCanonicalJson(*back.job), json);
        EXPECT_EQ(back.job->values, job.values);
        EXPECT_EQ(back.job->seed, job.seed);
      }
    }
  }
}

TEST(Canonical, MembersAreSortedAtEveryLevel) {
  const std::string json = ToCanonicalJson(MakeJob("published", "relative", "counting", 1));
  EXPECT_EQ(Json::parse(json).dump().size() > 0, true);
  const auto ordered = nlohmann::ordered_json::parse(json);
  for (const auto& [group, members] : ordered.items()) {
    if (!members.is_object()) continue;
    std::vector<std::string> names;
    for (const auto& [name, value] : members.items()) names.push_back(name);
    EXPECT_TRUE(std::is_sorted(names.begin(), names.end())) << group;
  }
}

TEST(Canonical, SettingADefaultExplicitlyChangesNothing) {
  const Values set = {{"pe.base", 10000.0}, {"model.layers", std::int64_t{6}}};
  EXPECT_EQ(ToCanonicalJson(MakeJob("clean", "rope", "distance", 0, set)),
            ToCanonicalJson(MakeJob("clean", "rope", "distance", 0)));
}

TEST(Canonical, FieldsWithoutMeaningAreAbsent) {
  const Json table = Json::parse(ToCanonicalJson(MakeJob("published", "relative", "distance", 0)));
  EXPECT_EQ(table["pe"],
            (Json{{"name", "relative"}, {"version", 1}, {"form", "table"}, {"init_std", 0.02}}));
  EXPECT_FALSE(table["task"].contains("max_distance"));
  EXPECT_EQ(table["task"]["max_gap"], 70);
}

// Reads the example after one change and returns the messages.
std::vector<std::string> Reading(const std::function<void(Json&)>& change) {
  Json json = Json::parse(DocumentedExample());
  change(json);
  const CanonicalResult result = FromCanonicalJson(json.dump());
  EXPECT_EQ(result.job.has_value(), result.violations.empty());
  return Messages(result.violations);
}

TEST(FromCanonical, IsStrict) {
  EXPECT_THAT(Reading([](Json&) {}), IsEmpty());
  EXPECT_THAT(Reading([](Json& j) { j["format"] = 2; }), ElementsAre("format is 2; it must be 1"));
  EXPECT_THAT(Reading([](Json& j) { j.erase("seed"); }),
              ElementsAre("seed is missing; it must be an integer from 0 to 9007199254740991"));
  EXPECT_THAT(Reading([](Json& j) { j["seed"] = -1; }), ElementsAre(HasSubstr("seed is -1")));
  EXPECT_THAT(Reading([](Json& j) { j["seed"] = 18446744073709551615ULL; }),
              ElementsAre(HasSubstr("seed is 1844")));
  EXPECT_THAT(Reading([](Json& j) { j["note"] = 1; }),
              ElementsAre(HasSubstr("unknown member \"note\"; known: format")));
  EXPECT_THAT(Reading([](Json& j) { j["model"].erase("layers"); }),
              ElementsAre("model.layers is missing; it must be an integer from 1 to 64"));
  EXPECT_THAT(Reading([](Json& j) { j["model"]["layer"] = 1; }),
              ElementsAre(HasSubstr("unknown member \"layer\" in model; did you mean layers?")));
  EXPECT_THAT(Reading([](Json& j) { j["model"]["layers"] = "six"; }),
              ElementsAre("model.layers is \"six\"; it must be an integer from 1 to 64"));
  EXPECT_THAT(Reading([](Json& j) { j["model"]["layers"] = 6.5; }),
              ElementsAre(HasSubstr("model.layers is 6.5")));
  EXPECT_THAT(Reading([](Json& j) { j["model"]["mask"] = "both"; }),
              ElementsAre("model.mask is \"both\"; it must be one of causal, none"));
  EXPECT_THAT(Reading([](Json& j) {
                j["model"]["dropout_sites"] = {"ffn", "attention"};
              }),
              ElementsAre(HasSubstr("model.dropout_sites is a list")));
  EXPECT_THAT(Reading([](Json& j) { j["model"] = 3; }),
              ElementsAre("model must be an object, not 3"));
  EXPECT_THAT(Reading([](Json& j) { j.erase("train"); }), ElementsAre("train is missing"));
  EXPECT_THAT(Reading([](Json& j) { j["pe"]["name"] = "ropee"; }),
              ElementsAre(HasSubstr("unknown pe \"ropee\" in pe; did you mean rope?")));
  EXPECT_THAT(Reading([](Json& j) { j["pe"]["version"] = 2; }),
              ElementsAre("pe.version is 2; it must be 1"));
  EXPECT_THAT(Reading([](Json& j) { j["pe"]["buckets"] = 32; }),
              ElementsAre(HasSubstr("unknown member \"buckets\"")));
  EXPECT_THAT(Reading([](Json& j) { j["task"]["max_gap"] = 70; }),
              ElementsAre(HasSubstr("unknown member \"max_gap\"")));
  EXPECT_THAT(Reading([](Json& j) { j["model"]["d_model"] = 100; }),
              testing::Contains("model.d_model is 100; it must be a multiple of model.heads (16) "
                                "(constraint heads-divide-width)"));
}

TEST(FromCanonical, SaysEverythingThatIsWrong) {
  EXPECT_EQ(Reading([](Json& j) {
              j["model"]["layers"] = 0;
              j["train"]["lr"] = -1;
              j["task"]["vocabulary"] = "many";
            }).size(),
            3u);
}

TEST(FromCanonical, ShowsLongValuesCutBetweenCharacters) {
  const std::string most(78, 'x');  // and a quote before it
  EXPECT_THAT(Reading([&](Json& j) { j["train"]["lr"] = most + "é"; }),
              ElementsAre(HasSubstr("train.lr is \"" + most + "…; ")));
}

TEST(FromCanonical, WhatIsNotAnObject) {
  EXPECT_THAT(Messages(FromCanonicalJson("").violations), ElementsAre(HasSubstr("not valid JSON")));
  EXPECT_THAT(Messages(FromCanonicalJson("{\"format\":").violations),
              ElementsAre(HasSubstr("broken at byte")));
  EXPECT_THAT(Messages(FromCanonicalJson("[1]").violations),
              ElementsAre("the spec must be an object, not a list"));
  EXPECT_THAT(Messages(FromCanonicalJson("1e999").violations),
              ElementsAre(HasSubstr("number is too large")));
  EXPECT_THAT(Messages(FromCanonicalJson("\xff").violations),
              ElementsAre(HasSubstr("not valid JSON")));
  EXPECT_THAT(Messages(FromCanonicalJson(std::string(2 << 20, ' ')).violations),
              ElementsAre(HasSubstr("2097152 bytes")));
  EXPECT_THAT(Messages(FromCanonicalJson(std::string(1 << 20, '[')).violations),
              ElementsAre("the spec is nested more than 64 deep"));
}

TEST(FromCanonical, DuplicateMembersAreRefused) {
  std::string json = DocumentedExample();
  json.insert(1, "\"seed\":1,");
  EXPECT_THAT(Messages(FromCanonicalJson(json).violations), ElementsAre("\"seed\" is there twice"));
}

TEST(JobDocument, FullAndBare) {
  const std::string spec = ToCanonicalJson(MakeJob("clean", "rope", "distance", 0));
  const JobDocumentResult bare = FromJobDocument(spec);
  ASSERT_TRUE(bare.document);
  EXPECT_EQ(bare.document->job_id, "job");
  EXPECT_THAT(bare.document->analyses, IsEmpty());
  const std::vector<Analysis> analyses = {MakeAnalysis("published", "head_ablation")};
  const JobDocumentResult full = FromJobDocument("{\"job\":\"j17\",\"spec\":" + spec +
                                                 ",\"analyses\":" + ToAnalysesJson(analyses) + "}");
  ASSERT_TRUE(full.document) << testing::PrintToString(Messages(full.violations));
  EXPECT_EQ(full.document->job_id, "j17");
  ASSERT_EQ(full.document->analyses.size(), 1u);
  EXPECT_EQ(full.document->analyses[0].parameters, analyses[0].parameters);
  EXPECT_EQ(ToCanonicalJson(full.document->job), spec);
}

TEST(JobDocument, Errors) {
  const std::string spec = ToCanonicalJson(MakeJob("clean", "rope", "distance", 0));
  const auto reading = [](const std::string& json) {
    return Messages(FromJobDocument(json).violations);
  };
  EXPECT_THAT(reading("{\"spec\":" + spec + "}"), ElementsAre(HasSubstr("job must be text")));
  EXPECT_THAT(reading("{\"job\":\"a\"}"), ElementsAre("spec must be an object, not null"));
  EXPECT_THAT(reading("{\"job\":\"a\",\"specs\":1,\"spec\":" + spec + "}"),
              ElementsAre(HasSubstr("unknown member \"specs\"; did you mean spec?")));
  EXPECT_THAT(reading("{\"job\":\"a\",\"spec\":" + spec +
                      ",\"analyses\":[{\"name\":\"head_ablation\",\"version\":9,"
                      "\"parameters\":{}}]}"),
              testing::Contains("analyses[0].version is 9; it must be 2"));
  EXPECT_THAT(reading("{\"job\":\"a\",\"spec\":" + spec + ",\"analyses\":7}"),
              ElementsAre("analyses must be a list, not 7"));
}

TEST(Analyses, CanonicalParameters) {
  EXPECT_EQ(
      CanonicalParameters(MakeAnalysis("clean", "head_ablation")),
      R"({"data":"test","hygiene":"clean","max_examples":0,"method":"zero","target":"head"})");
  EXPECT_EQ(
      ToAnalysesJson({MakeAnalysis("published", "head_ablation")}),
      R"([{"name":"head_ablation","parameters":{"data":"all","hygiene":"authors","max_examples":0,)"
      R"("method":"zero","target":"authors"},"version":2}])");
  EXPECT_EQ(CanonicalParameters(MakeAnalysis("published", "layer_ablation")),
            R"({"data":"all","max_examples":0,"method":"zero"})");
  EXPECT_EQ(CanonicalParameters(MakeAnalysis("clean", "cumulative_ablation")),
            R"({"max_examples":2000,"method":"zero","orders":5,"steps":16})");
  EXPECT_EQ(ToAnalysesJson({}), "[]");
}

TEST(Canonical, SetsOfIntegersAreArrays) {
  const Values set = {{"pe.select", std::string("list")},
                      {"pe.head_list", std::vector<std::int64_t>{0, 5, 12}}};
  const Job job = MakeJob("clean", "partial_rope", "distance", 0, set);
  const std::string json = ToCanonicalJson(job);
  EXPECT_THAT(json, HasSubstr(R"("pe":{"base":10000,"head_list":[0,5,12],"name":"partial_rope")"));
  const CanonicalResult back = FromCanonicalJson(json);
  ASSERT_TRUE(back.job);
  EXPECT_THAT(back.job->Ints("pe.head_list"), ElementsAre(0, 5, 12));
  const auto reading = [&](const Json& heads) {
    Json changed = Json::parse(json);
    changed["pe"]["head_list"] = heads;
    return Messages(FromCanonicalJson(changed.dump()).violations);
  };
  const std::string allowed =
      "pe.head_list is a list; it must be a list of integers from 0 to 127, each at most once";
  EXPECT_THAT(reading({5, 0}), ElementsAre(allowed));
  EXPECT_THAT(reading({5, 5}), ElementsAre(allowed));
  EXPECT_THAT(reading({128}), ElementsAre(allowed));
  EXPECT_THAT(reading({0.5}), ElementsAre(allowed));
  EXPECT_THAT(reading({"0"}), ElementsAre(allowed));
  EXPECT_THAT(reading({18446744073709551615ULL}), ElementsAre(allowed));
  EXPECT_THAT(reading(3), ElementsAre(HasSubstr("pe.head_list is 3; it must be a list")));
  EXPECT_THAT(reading({16}), ElementsAre(HasSubstr("(constraint listed-heads-exist)")));
  EXPECT_THAT(reading(Json::array()), ElementsAre(HasSubstr("(constraint heads-listed)")));
}

TEST(FromCanonical, MlaNamesTheConstraintForATableOfBiases) {
  Json spec = Json::parse(ToCanonicalJson(MakeJob("clean", "mla", "distance", 0)));
  spec["pe"]["buckets"] = 32;
  EXPECT_THAT(Messages(FromCanonicalJson(spec.dump()).violations),
              ElementsAre(testing::AllOf(HasSubstr("unknown member \"buckets\" in pe"),
                                         HasSubstr("write pe: relative"),
                                         testing::EndsWith("(constraint mla-no-bias)"))));
}

TEST(ScoredClasses, AreTheClassesThatOccurAndAreScored) {
  const auto classes = [](const char* protocol, const char* pe, const char* task,
                          const Values& set = {}) {
    return ScoredClasses(MakeJob(protocol, pe, task, 0, set));
  };
  EXPECT_EQ(classes("clean", "rope", "distance"), 70);
  EXPECT_EQ(classes("clean", "rope", "counting"), 101);
  EXPECT_EQ(classes("published", "mla", "distance"), 70);
  EXPECT_EQ(classes("published", "mla", "counting"), 101);
  EXPECT_EQ(classes("published", "rope", "counting"), 100) << "label 0 is masked";
  EXPECT_EQ(classes("published", "rope", "distance"), 70) << "labels start at 2";
  const Values exact = {{"task.label_space", std::string("exact")}};
  EXPECT_EQ(classes("published", "rope", "distance", exact), 69) << "label 2 is class 0";
  EXPECT_EQ(classes("published", "rope", "counting", exact), 100);
  const Values nonzero = {{"task.scored_classes", std::string("nonzero")}};
  EXPECT_EQ(classes("clean", "rope", "distance", nonzero), 69) << "distance 1 is class 0";
  EXPECT_EQ(classes("clean", "rope", "distance", {{"task.length", std::int64_t{32}}}), 17);
}

TEST(Job, WrongFieldOrTypeIsAMistakeOfTheProgram) {
  const Job job = MakeJob("clean", "rope", "distance", 0);
  EXPECT_THROW(job.Int("pe.buckets"), std::logic_error);
  EXPECT_THROW(job.Int("train.lr"), std::logic_error);
  EXPECT_THROW(job.Ints("pe.head_list"), std::logic_error);
  EXPECT_THROW(job.Ints("model.dropout_sites"), std::logic_error);
  EXPECT_THROW(MakeJob("clean", "ropes", "distance", 0), std::logic_error);
}

TEST(Format, PlaceAndCommandLine) {
  Violation violation;
  violation.message = "unknown pe \"alibbi\"";
  EXPECT_EQ(Format(violation, "a.yaml"), "unknown pe \"alibbi\"");
  violation.path = "--set seed";
  EXPECT_EQ(Format(violation, "a.yaml"), "--set seed: unknown pe \"alibbi\"");
  violation.line = 3;
  violation.column = 22;
  EXPECT_EQ(Format(violation, "a.yaml"), "a.yaml:3:22: unknown pe \"alibbi\"");
}

}  // namespace
}  // namespace pelab::experiment
