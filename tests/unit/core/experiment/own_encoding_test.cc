// Encodings from files: their declarations, and the items of documents that name them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/catalog/own.h"
#include "core/experiment/canonical_json.h"
#include "core/experiment/declaration.h"
#include "core/experiment/sweep.h"
#include "tests/unit/core/experiment/declared_json.h"

namespace pelab::experiment {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

const std::string kHash(64, 'a');

// A valid declaration with one member replaced by `text` (JSON); an empty text removes it.
std::string Declared(const std::string& member = "", const std::string& text = "") {
  std::map<std::string, std::string> members = {
      {"format", "1"},
      {"kind", R"("encoding")"},
      {"name", R"("decay")"},
      {"sha256", "\"" + kHash + "\""},
      {"bytes", "1234"},
      {"methods", R"(["distance_bias","input_term"])"},
      {"causal_only", "false"},
      {"options", R"([{"name":"beta","type":"int","default":2,"min":1,"max":9},
                      {"name":"alpha","type":"real","default":0.5,"min":0,"max":10,"help":"a"},
                      {"name":"on","type":"bool","default":true}])"},
      {"help", R"("decays")"}};
  if (!member.empty()) members[member] = text;
  return ObjectOf(members);
}

std::string Problem(const std::string& json) { return ParseOwnEncoding(json).problem; }

TEST(OwnEncodingTest, IsReadAndWrittenAgain) {
  const OwnEncodingResult read = ParseOwnEncoding(Declared());
  ASSERT_EQ(read.problem, "");
  const OwnEncoding& encoding = read.encoding;
  EXPECT_EQ(encoding.name, "decay");
  EXPECT_EQ(encoding.sha256, kHash);
  EXPECT_EQ(encoding.bytes, 1234u);
  EXPECT_THAT(encoding.methods, ElementsAre("input_term", "distance_bias"))
      << "in the order of the catalog";
  ASSERT_EQ(encoding.options.size(), 3u);
  EXPECT_EQ(encoding.options[0].name, "alpha") << "in the order of their names";
  EXPECT_EQ(encoding.options[0].default_value, catalog::Value(0.5));
  EXPECT_EQ(encoding.options[1].default_value, catalog::Value(std::int64_t{2}));
  EXPECT_EQ(encoding.options[2].default_value, catalog::Value(true));
  const OwnEncodingResult again = ParseOwnEncoding(ToJson(encoding));
  ASSERT_EQ(again.problem, "");
  EXPECT_EQ(ToJson(again.encoding), ToJson(encoding));
}

TEST(OwnEncodingTest, OptionsAreOneText) {
  const OwnEncoding encoding = ParseOwnEncoding(Declared()).encoding;
  EXPECT_EQ(OptionsText(encoding, {}), "alpha=0.5,beta=2,on=true");
  const std::string text = OptionsText(encoding, {{"alpha", 1e-7}, {"on", false}});
  EXPECT_EQ(text, "alpha=1e-7,beta=2,on=false");
  EXPECT_TRUE(catalog::IsOptionsText(text));
  EXPECT_THAT(OptionValues(text), ElementsAre(Pair("alpha", 1e-7), Pair("beta", 2), Pair("on", 0)));
  EXPECT_THAT(OptionValues(""), ElementsAre());
}

TEST(OwnEncodingTest, OptionsTextHasOneSpelling) {
  for (const char* text : {"a=1", "a=1,b=true", "a_1=-0.5,b=1e-8", ""}) {
    EXPECT_TRUE(catalog::IsOptionsText(text)) << text;
  }
  for (const char* text : {"a", "a=", "=1", "a=1,", "b=1,a=2", "a=1,a=2", "a=1.0", "a=+1", "a=01",
                           "a=nan", "a=inf", "A=1", "a=True", "a=1 ", "a=1;b=2", "a=-0"}) {
    EXPECT_FALSE(catalog::IsOptionsText(text)) << text;
  }
}

TEST(OwnEncodingTest, SaysWhatIsWrong) {
  EXPECT_EQ(Problem("[]"), "the declaration is not a JSON object");
  EXPECT_EQ(Problem("{"), "the declaration is not a JSON object");
  EXPECT_THAT(Problem(std::string(kMaxDeclarationBytes + 1, ' ')), HasSubstr("65537 bytes"));
  EXPECT_EQ(Problem(Declared("format", "2")), "the declaration's format must be 1");
  EXPECT_EQ(Problem(Declared("kind", R"("task")")), "the declaration's kind must be \"encoding\"");
  EXPECT_THAT(Problem(Declared("name", R"("My PE")")), HasSubstr("name \"My PE\" must be a lower"));
  EXPECT_THAT(Problem(Declared("sha256", R"("ab")")), HasSubstr("64 hexadecimal digits"));
  EXPECT_THAT(Problem(Declared("bytes", "-1")), HasSubstr("bytes must be an integer"));
  EXPECT_THAT(Problem(Declared("bytes", "99999999999")), HasSubstr("at most 67108864"));
  EXPECT_THAT(Problem(Declared("methods", R"(["distance_bia"])")),
              HasSubstr("did you mean distance_bias? known: input_term, transform"));
  EXPECT_THAT(Problem(Declared("methods", "[]")), HasSubstr("names no methods"));
  EXPECT_THAT(Problem(Declared("methods", "[1]")), HasSubstr("names a method"));
  EXPECT_THAT(Problem(Declared("causal_only", "1")), HasSubstr("must be true or false"));
  EXPECT_THAT(Problem(Declared("metods", "[]")), HasSubstr("did you mean methods?"));
  const std::pair<const char*, const char*> options[] = {
      {R"({})", "options must be a list"},
      {R"([1])", "is not an object"},
      {R"([{"name":"Alpha","type":"bool","default":true}])", "option's name \"Alpha\" must be"},
      {R"([{"name":"file","type":"bool","default":true}])", "must not be named file"},
      {R"([{"name":"a","type":"text","default":true}])", "bool, int or real, not \"text\""},
      {R"([{"name":"a","type":"bool"}])", "option a has no default"},
      {R"([{"name":"a","type":"real","default":2,"min":0,"max":1}])",
       "option a.default must be a number from 0 to 1"},
      {R"([{"name":"a","type":"int","default":1.5,"min":0,"max":9}])", "must be an integer"},
      {R"([{"name":"a","type":"real","default":0,"min":0}])", "option a.max must be a number"},
      {R"([{"name":"a","type":"real","default":0,"min":0,"max":1e300}])", "between -1e15 and 1e15"},
      {R"([{"name":"a","type":"bool","default":true},{"name":"a","type":"bool","default":true}])",
       "option a is declared twice"},
  };
  for (const auto& [json, said] : options) {
    EXPECT_THAT(Problem(Declared("options", json)), HasSubstr(said)) << json;
  }
}

const std::vector<Override> kFile = {{"file:mine.pt", Declared()}};

SweepResult ParsePe(const std::string& pe, const std::vector<Override>& overrides = kFile,
                    const std::string& rest = "") {
  return ParseSweep("name: a\npe: " + pe + "\ntask: distance\nseed: 0..1\n" + rest, overrides);
}

// The messages of the violations, each with its place.
std::vector<std::string> Complaints(const SweepResult& result) {
  std::vector<std::string> messages;
  for (const Violation& violation : result.violations) {
    messages.push_back(Format(violation, "a.yaml"));
  }
  return messages;
}

TEST(OwnItemTest, EachCombinationOfOptionsIsAnEncoding) {
  const SweepResult result =
      ParsePe("[rope, {name: own, file: mine.pt, alpha: [0.5, 1], on: [true, false]}]");
  ASSERT_THAT(Complaints(result), ElementsAre());
  std::vector<std::string> labels;
  for (std::uint64_t i = 0; i < result.sweep->cells(); i += 2) {
    labels.push_back(result.sweep->At(i)->pe_label);
  }
  EXPECT_THAT(labels, ElementsAre("rope", "own:decay(alpha=0.5,beta=2,on=true)",
                                  "own:decay(alpha=1,beta=2,on=true)",
                                  "own:decay(alpha=0.5,beta=2,on=false)",
                                  "own:decay(alpha=1,beta=2,on=false)"));
}

TEST(OwnItemTest, TheKeyIsThatOfTheFileAndTheOptionsNotOfThePath) {
  const auto key = [](const std::string& pe, const std::vector<Override>& overrides = kFile) {
    const SweepResult result = ParsePe(pe, overrides);
    return result.sweep ? result.sweep->At(0)->key : Complaints(result).front();
  };
  const std::string own = key("{name: own, file: mine.pt}");
  EXPECT_EQ(key("{name: own, file: ../b.pt}", {{"file:../b.pt", Declared()}}), own);
  EXPECT_EQ(key("{name: own, file: mine.pt, alpha: 5e-1}"), own) << "a default that is named";
  EXPECT_NE(key("{name: own, file: mine.pt, alpha: 0.6}"), own);
  const std::string other = "\"" + std::string(64, 'b') + "\"";
  EXPECT_NE(key("{name: own, file: mine.pt}", {{"file:mine.pt", Declared("sha256", other)}}), own);
  const std::string longer = Declared("help", R"("in other words")");
  EXPECT_EQ(key("{name: own, file: mine.pt}", {{"file:mine.pt", longer}}), own);
}

TEST(OwnItemTest, ItsCanonicalFormIsReadWithoutTheFile) {
  const Cell cell = *ParsePe("{name: own, file: mine.pt}").sweep->At(1);
  EXPECT_THAT(cell.canonical_json,
              HasSubstr(R"("pe":{"causal_only":false,"encoding":"decay","file":")" + kHash +
                        R"(","methods":["input_term","distance_bias"],"name":"own",)" +
                        R"("options":"alpha=0.5,beta=2,on=true","version":1})"));
  const CanonicalResult read = FromCanonicalJson(cell.canonical_json);
  ASSERT_TRUE(read.job.has_value()) << read.violations.front().message;
  EXPECT_EQ(ToCanonicalJson(*read.job), cell.canonical_json);
}

TEST(OwnItemTest, ErrorsNameThePlaceAndWhatIsAllowed) {
  const auto said = [](const std::string& pe, const std::vector<Override>& overrides = kFile,
                       const std::string& rest = "") {
    const std::vector<std::string> messages = Complaints(ParsePe(pe, overrides, rest));
    return messages.empty() ? "" : messages.front();
  };
  EXPECT_THAT(said("own"), HasSubstr("a.yaml:2:5: an own encoding needs a file"));
  EXPECT_THAT(said("{name: own}"), HasSubstr("write {name: own, file: mine.pt}"));
  EXPECT_THAT(said("{name: own, file: [a, b]}"),
              HasSubstr("a.yaml:2:23: pe.file must be the path"));
  EXPECT_THAT(said("{name: own, file: yours.pt}"),
              HasSubstr("a.yaml:2:23: the file \"yours.pt\" did not come with this document"));
  EXPECT_THAT(said("{name: own, file: mine.pt, alpa: 1}"),
              HasSubstr("a.yaml:2:32: unknown option of encoding decay \"alpa\"; did you mean "
                        "alpha? known: alpha, beta, file, on"));
  EXPECT_THAT(said("{name: own, file: mine.pt, alpha: 11}"),
              HasSubstr("a.yaml:2:39: pe.alpha must be a number from 0 to 10, not 11"));
  EXPECT_THAT(said("{name: own, file: mine.pt, alpha: []}"), HasSubstr("is an empty list"));
  EXPECT_THAT(said("{name: own, file: mine.pt}", {{"file:mine.pt", "{}"}}),
              HasSubstr("mine.pt: the declaration's format must be 1"));
  EXPECT_THAT(said("{name: own, file: mine.pt}", {{"file:mine.pt", Declared("sha256", "")}}),
              HasSubstr("lacks the file's sha256"));
  EXPECT_THAT(said("{name: own, file: mine.pt}", kFile, "axes: {pe.options: [a=1]}\n"),
              HasSubstr("pe.options is what the file of an own encoding declares"));
  std::vector<Override> set = kFile;
  set.push_back({"pe.file", kHash});
  EXPECT_THAT(said("{name: own, file: mine.pt}", set), HasSubstr("pe.file is what the file"));
}

TEST(OwnItemTest, WhatItDeclaresIsAConstraint) {
  const std::vector<Override> causal = {{"file:mine.pt", Declared("causal_only", "true")}};
  EXPECT_THAT(Complaints(ParsePe("{name: own, file: mine.pt}", causal,
                                 "axes: {model.mask: [none, causal]}\n")),
              ElementsAre(HasSubstr("model.mask is none; it must be causal: the file of the "
                                    "encoding declares causal_only (constraint causal-only)")));
  const std::vector<Override> angles = {{"file:mine.pt", Declared("methods", R"(["angles"])")}};
  EXPECT_THAT(
      Complaints(ParsePe("{name: own, file: mine.pt}", angles, "model: {d_model: 60, heads: 4}\n")),
      ElementsAre(HasSubstr("(constraint even-head-size)")));
}

}  // namespace
}  // namespace pelab::experiment
