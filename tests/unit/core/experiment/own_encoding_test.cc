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
#include "tests/unit/core/experiment/own_encoding_fixture.h"

namespace pelab::experiment {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

std::string Problem(const std::string& json) { return ParseOwnEncoding(json).problem; }

TEST(OwnEncodingTest, IsReadAndWrittenAgain) {
  const OwnEncodingResult read = ParseOwnEncoding(DeclaredEncoding());
  ASSERT_EQ(read.problem, "");
  const OwnEncoding& encoding = read.encoding;
  EXPECT_EQ(encoding.name, "decay");
  EXPECT_EQ(encoding.sha256, kEncodingHash);
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
  const OwnEncoding encoding = ParseOwnEncoding(DeclaredEncoding()).encoding;
  EXPECT_EQ(OptionsText(encoding, {}), "alpha=0.5,beta=2,on=true");
  const std::string text = OptionsText(encoding, {{"alpha", 1e-7}, {"on", false}});
  EXPECT_EQ(text, "alpha=1e-7,beta=2,on=false");
  EXPECT_TRUE(catalog::IsOptionsText(text));
  const OptionValuesResult read = OptionValues(encoding, text);
  EXPECT_EQ(read.problem, "");
  EXPECT_THAT(read.values, ElementsAre(Pair("alpha", 1e-7), Pair("beta", 2), Pair("on", 0)));
  EXPECT_THAT(OptionValues(ParseOwnEncoding(DeclaredEncoding("options", "[]")).encoding, "").values,
              ElementsAre());
}

TEST(OwnEncodingTest, OptionsThatAreNotTheDeclaredOnesAreRefused) {
  const OwnEncoding encoding = ParseOwnEncoding(DeclaredEncoding()).encoding;
  const auto problem = [&](const std::string& text) {
    const OptionValuesResult read = OptionValues(encoding, text);
    EXPECT_EQ(read.problem.empty(), read.values.size() == encoding.options.size()) << text;
    return read.problem;
  };
  EXPECT_EQ(problem(""),
            "its file declares the options alpha, beta, on; allowed: that of the job, none");
  EXPECT_THAT(problem("alpha=1,beta=2"), HasSubstr("of the job, alpha, beta"));
  EXPECT_THAT(problem("alpha=1,beta=2,on"), HasSubstr("the option on is ; allowed: true or false"));
  EXPECT_EQ(problem("alpha=10.5,beta=2,on=true"),
            "the option alpha is 10.5; allowed: a number from 0 to 10");
  EXPECT_EQ(problem("alpha=log,beta=2,on=true"),
            "the option alpha is log; allowed: a number from 0 to 10");
  EXPECT_EQ(problem("alpha=1,beta=2.5,on=true"),
            "the option beta is 2.5; allowed: an integer from 1 to 9");
  EXPECT_EQ(problem("alpha=1,beta=2,on=1"), "the option on is 1; allowed: true or false");
}

const char* const kChoices = R"([{"name":"form","type":"choice","choices":["linear","log","x_2"],
                                  "default":"log","help":"a form"},
                                 {"name":"alpha","type":"real","default":0.5,"min":0,"max":1}])";

TEST(OwnEncodingTest, AChoiceIsItsPlaceForConfigure) {
  const OwnEncodingResult read = ParseOwnEncoding(DeclaredEncoding("options", kChoices));
  ASSERT_EQ(read.problem, "");
  const OwnOption& form = read.encoding.options[1];
  EXPECT_EQ(form.type, catalog::FieldType::kChoice);
  EXPECT_THAT(form.choices, ElementsAre("linear", "log", "x_2")) << "in the declaration's order";
  EXPECT_EQ(form.default_value, catalog::Value(std::string("log")));
  EXPECT_THAT(ToJson(read.encoding),
              HasSubstr(R"({"name":"form","type":"choice","choices":["linear","log","x_2"],)"
                        R"("default":"log","help":"a form"})"));
  EXPECT_EQ(ToJson(ParseOwnEncoding(ToJson(read.encoding)).encoding), ToJson(read.encoding));
  EXPECT_EQ(OptionsText(read.encoding, {}), "alpha=0.5,form=log");
  const std::string text = OptionsText(read.encoding, {{"form", std::string("x_2")}});
  EXPECT_TRUE(catalog::IsOptionsText(text));
  EXPECT_THAT(OptionValues(read.encoding, text).values,
              ElementsAre(Pair("alpha", 0.5), Pair("form", 2)));
  EXPECT_THAT(OptionValues(read.encoding, "alpha=0.5,form=linear").values,
              ElementsAre(Pair("alpha", 0.5), Pair("form", 0)));
  for (const char* other : {"alpha=0.5,form=lin", "alpha=0.5,form=1", "alpha=0.5,form=true"}) {
    EXPECT_THAT(OptionValues(read.encoding, other).problem,
                HasSubstr("; allowed: one of linear, log, x_2"))
        << other;
  }
}

TEST(OwnEncodingTest, SaysWhatIsWrongWithChoices) {
  const auto problem = [](const std::string& members) {
    return Problem(
        DeclaredEncoding("options", R"([{"name":"form","type":"choice",)" + members + "}]"));
  };
  std::string many, most;
  for (int i = 0; i < 33; ++i) {
    many += (i > 0 ? ",\"c" : "\"c") + std::to_string(i) + "\"";
    if (i == 31) most = many;
  }
  EXPECT_EQ(problem(R"("default":"c31","choices":[)" + most + "]"), "");
  const std::string count = "option form.choices must be a list of 2 to 32 names";
  for (const std::string& choices :
       {std::string("[]"), std::string(R"(["a"])"), std::string(R"("a")"), std::string("null"),
        std::string(R"({"a":1,"b":2})"), "[" + many + "]"}) {
    EXPECT_EQ(problem(R"("default":"a","choices":)" + choices), count) << choices;
  }
  EXPECT_EQ(problem(R"("default":"a")"), count);
  for (const char* name : {R"("Log")", R"("a b")", R"("")", "1", "true", R"("true")", R"("false")",
                           R"("null")", R"("nan")", R"("inf")", R"("infinity")", R"(["a"])"}) {
    EXPECT_THAT(problem(R"("default":"a","choices":["a",)" + std::string(name) + "]"),
                testing::AllOf(HasSubstr("option form: a choice \""),
                               HasSubstr("\" must be a lower-case letter, then up to 39")))
        << name;
  }
  EXPECT_LT(problem(R"("default":"a","choices":["a",")" + std::string(50000, 'b') + "\"]").size(),
            400u);
  EXPECT_EQ(problem(R"("default":"a","choices":["a","b","a"])"),
            "option form has the choice a twice");
  EXPECT_EQ(problem(R"("default":"c","choices":["a","b"])"),
            "option form.default must be one of a, b");
  EXPECT_EQ(problem(R"("choices":["a","b"])"), "option form.default must be one of a, b");
  EXPECT_EQ(problem(R"("default":0,"choices":["a","b"])"),
            "option form.default must be text of at most 100 bytes");
  EXPECT_EQ(problem(R"("default":"a","choices":["a","b"],"min":0)"),
            "option form has an unknown member \"min\"");
  EXPECT_THAT(Problem(DeclaredEncoding(
                  "options", R"([{"name":"a","type":"bool","default":true,"choices":["a","b"]}])")),
              HasSubstr("option a has an unknown member \"choices\""));
}

TEST(OwnEncodingTest, MaySayWhetherItExtrapolates) {
  EXPECT_EQ(ParseOwnEncoding(DeclaredEncoding()).encoding.extrapolates, std::nullopt);
  for (const bool value : {false, true}) {
    const std::string text = value ? "true" : "false";
    const OwnEncodingResult read = ParseOwnEncoding(DeclaredEncoding("extrapolates", text));
    ASSERT_EQ(read.problem, "");
    EXPECT_EQ(read.encoding.extrapolates, value);
    EXPECT_THAT(ToJson(read.encoding), HasSubstr("\"extrapolates\":" + text));
  }
  for (const char* wrong : {"null", "0", R"("false")", "[]"}) {
    EXPECT_EQ(Problem(DeclaredEncoding("extrapolates", wrong)),
              "the declaration.extrapolates must be true or false")
        << wrong;
  }
}

// Files of earlier versions declare none of the newer members, and their texts stay the same.
TEST(OwnEncodingTest, NewerMembersAreOnlyWrittenIfTheyAreDeclared) {
  EXPECT_EQ(ToJson(ParseOwnEncoding(DeclaredEncoding("help", "")).encoding),
            R"({"format":1,"kind":"encoding","name":"decay","sha256":")" + kEncodingHash +
                R"(","bytes":1234,"methods":["input_term","distance_bias"],"causal_only":false,)"
                R"("options":[{"name":"alpha","type":"real","min":0.0,"max":10.0,"default":0.5,)"
                R"("help":"a"},{"name":"beta","type":"int","min":1.0,"max":9.0,"default":2},)"
                R"({"name":"on","type":"bool","default":true}]})");
}

TEST(OwnEncodingTest, OptionsTextHasOneSpelling) {
  for (const char* text : {"a=1", "a=1,b=true", "a_1=-0.5,b=1e-8", "a=log,b=e5,c=x_2", ""}) {
    EXPECT_TRUE(catalog::IsOptionsText(text)) << text;
  }
  for (const char* text :
       {"a",      "a=",   "=1",      "a=1,",  "b=1,a=2",    "a=1,a=2", "a=1.0",
        "a=+1",   "a=01", "a=nan",   "a=inf", "a=infinity", "a=null",  "A=1",
        "a=True", "a=1 ", "a=1;b=2", "a=-0",  "a=lo g",     "a=_log",  "a=log=log"}) {
    EXPECT_FALSE(catalog::IsOptionsText(text)) << text;
  }
}

TEST(OwnEncodingTest, SaysWhatIsWrong) {
  EXPECT_EQ(Problem("[]"), "the declaration is not a JSON object");
  EXPECT_EQ(Problem("{"), "the declaration is not a JSON object");
  EXPECT_THAT(Problem(std::string(kMaxDeclarationBytes + 1, ' ')), HasSubstr("65537 bytes"));
  EXPECT_EQ(Problem(DeclaredEncoding("format", "2")), "the declaration's format must be 1");
  EXPECT_EQ(Problem(DeclaredEncoding("kind", R"("task")")),
            "the declaration's kind must be \"encoding\"");
  EXPECT_THAT(Problem(DeclaredEncoding("name", R"("My PE")")),
              HasSubstr("name \"My PE\" must be a lower"));
  EXPECT_THAT(Problem(DeclaredEncoding("sha256", R"("ab")")), HasSubstr("64 hexadecimal digits"));
  EXPECT_THAT(Problem(DeclaredEncoding("bytes", "-1")), HasSubstr("bytes must be an integer"));
  EXPECT_THAT(Problem(DeclaredEncoding("bytes", "99999999999")), HasSubstr("at most 67108864"));
  EXPECT_THAT(Problem(DeclaredEncoding("methods", R"(["distance_bia"])")),
              HasSubstr("did you mean distance_bias? known: input_term, transform"));
  EXPECT_THAT(Problem(DeclaredEncoding("methods", "[]")), HasSubstr("names no methods"));
  EXPECT_THAT(Problem(DeclaredEncoding("methods", "[1]")), HasSubstr("names a method"));
  EXPECT_THAT(Problem(DeclaredEncoding("causal_only", "1")), HasSubstr("must be true or false"));
  EXPECT_THAT(Problem(DeclaredEncoding("metods", "[]")), HasSubstr("did you mean methods?"));
  const std::pair<const char*, const char*> options[] = {
      {R"({})", "options must be a list"},
      {R"([1])", "is not an object"},
      {R"([{"name":"Alpha","type":"bool","default":true}])", "option's name \"Alpha\" must be"},
      {R"([{"name":"file","type":"bool","default":true}])", "must not be named file"},
      {R"([{"name":"a","type":"text","default":true}])", "bool, int, real or choice, not \"text\""},
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
    EXPECT_THAT(Problem(DeclaredEncoding("options", json)), HasSubstr(said)) << json;
  }
}

const std::vector<Override> kFile = {{"file:mine.pt", DeclaredEncoding()}};

SweepResult ParsePe(const std::string& pe, const std::vector<Override>& overrides = kFile,
                    const std::string& rest = "") {
  return ParseSweep("name: a\npe: " + pe + "\ntask: distance\nseed: 0..1\n" + rest, overrides);
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

TEST(OwnItemTest, AChoiceIsOneOfItsNames) {
  const std::vector<Override> file = {{"file:mine.pt", DeclaredEncoding("options", kChoices)}};
  const SweepResult result = ParsePe("{name: own, file: mine.pt, form: [linear, log]}", file);
  ASSERT_THAT(Complaints(result), ElementsAre());
  EXPECT_EQ(result.sweep->At(0)->pe_label, "own:decay(alpha=0.5,form=linear)");
  EXPECT_EQ(result.sweep->At(2)->pe_label, "own:decay(alpha=0.5,form=log)");
  const std::string spec = result.sweep->At(2)->canonical_json;
  EXPECT_THAT(spec, HasSubstr(R"("options":"alpha=0.5,form=log")"));
  EXPECT_TRUE(FromCanonicalJson(spec).job.has_value());
  const auto key = [&](const std::string& form) {
    return ParsePe("{name: own, file: mine.pt" + form + "}", file).sweep->At(0)->key;
  };
  EXPECT_EQ(key(""), key(", form: log"));
  EXPECT_NE(key(""), key(", form: linear"));
  EXPECT_THAT(Complaints(ParsePe("{name: own, file: mine.pt, form: [log, lineer]}", file)),
              ElementsAre("a.yaml:2:44: pe.form must be one of linear, log, x_2, not \"lineer\"; "
                          "did you mean linear?"));
  EXPECT_THAT(Complaints(ParsePe("{name: own, file: mine.pt, form: 1}", file)),
              ElementsAre(HasSubstr("pe.form must be one of linear, log, x_2, not 1")));
}

TEST(OwnItemTest, TheKeyIsThatOfTheFileAndTheOptionsNotOfThePath) {
  const auto key = [](const std::string& pe, const std::vector<Override>& overrides = kFile) {
    const SweepResult result = ParsePe(pe, overrides);
    return result.sweep ? result.sweep->At(0)->key : Complaints(result).front();
  };
  const std::string own = key("{name: own, file: mine.pt}");
  EXPECT_EQ(key("{name: own, file: ../b.pt}", {{"file:../b.pt", DeclaredEncoding()}}), own);
  EXPECT_EQ(key("{name: own, file: mine.pt, alpha: 5e-1}"), own) << "a default that is named";
  EXPECT_NE(key("{name: own, file: mine.pt, alpha: 0.6}"), own);
  const std::string other = "\"" + std::string(64, 'b') + "\"";
  EXPECT_NE(
      key("{name: own, file: mine.pt}", {{"file:mine.pt", DeclaredEncoding("sha256", other)}}),
      own);
  const std::string longer = DeclaredEncoding("help", R"("in other words")");
  EXPECT_EQ(key("{name: own, file: mine.pt}", {{"file:mine.pt", longer}}), own);
}

TEST(OwnItemTest, ItsCanonicalFormIsReadWithoutTheFile) {
  const Cell cell = *ParsePe("{name: own, file: mine.pt}").sweep->At(1);
  EXPECT_THAT(cell.canonical_json,
              HasSubstr(R"("pe":{"causal_only":false,"encoding":"decay","file":")" + kEncodingHash +
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
  EXPECT_THAT(
      said("{name: own, file: mine.pt}", {{"file:mine.pt", DeclaredEncoding("sha256", "")}}),
      HasSubstr("lacks the file's sha256"));
  EXPECT_THAT(said("{name: own, file: mine.pt}", kFile, "axes: {pe.options: [a=1]}\n"),
              HasSubstr("pe.options is what the file of an own encoding declares"));
  std::vector<Override> set = kFile;
  set.push_back({"pe.file", kEncodingHash});
  EXPECT_THAT(said("{name: own, file: mine.pt}", set), HasSubstr("pe.file is what the file"));
}

TEST(OwnItemTest, WhatItDeclaresIsAConstraint) {
  const std::vector<Override> causal = {{"file:mine.pt", DeclaredEncoding("causal_only", "true")}};
  EXPECT_THAT(Complaints(ParsePe("{name: own, file: mine.pt}", causal,
                                 "axes: {model.mask: [none, causal]}\n")),
              ElementsAre(HasSubstr("model.mask is none; it must be causal: the file of the "
                                    "encoding declares causal_only (constraint causal-only)")));
  const std::vector<Override> angles = {
      {"file:mine.pt", DeclaredEncoding("methods", R"(["angles"])")}};
  EXPECT_THAT(
      Complaints(ParsePe("{name: own, file: mine.pt}", angles, "model: {d_model: 60, heads: 4}\n")),
      ElementsAre(HasSubstr("(constraint even-head-size)")));
}

}  // namespace
}  // namespace pelab::experiment
