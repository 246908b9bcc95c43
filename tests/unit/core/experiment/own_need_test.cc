// What encodings from files need of the jobs that use them.
#include "core/experiment/own_need.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/experiment/canonical_json.h"
#include "core/experiment/own_encoding.h"
#include "tests/unit/core/experiment/own_encoding_fixture.h"

namespace pelab::experiment {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const char* const kNeeds = R"({"train.lr":{"min":1e-5,"max":0.01},"model.heads":[8,4,16],
                               "model.mask":["causal"],"model.layers":{"min":1,"max":4}})";

std::string NeedProblem(const std::string& needs) {
  return ParseOwnEncoding(DeclaredEncoding("needs", needs)).problem;
}

TEST(OwnNeedTest, AreReadAndWrittenAgain) {
  const OwnEncodingResult read = ParseOwnEncoding(DeclaredEncoding("needs", kNeeds));
  ASSERT_EQ(read.problem, "");
  std::map<std::string, std::string> texts, words;
  for (const OwnNeed& need : read.encoding.needs) {
    texts[need.field] = need.ToText();
    words[need.field] = need.InWords();
  }
  EXPECT_EQ(texts, (std::map<std::string, std::string>{{"model.heads", "8, 4 or 16"},
                                                       {"model.layers", "1 to 4"},
                                                       {"model.mask", "causal"},
                                                       {"train.lr", "0.00001 to 0.01"}}));
  EXPECT_EQ(words["model.layers"], "from 1 to 4");
  EXPECT_EQ(words["model.mask"], "causal");
  const std::string json = ToJson(read.encoding);
  EXPECT_THAT(json, HasSubstr(R"("needs":{"model.heads":[8,4,16],"model.layers":{"min":1.0,)"
                              R"("max":4.0},"model.mask":["causal"],"train.lr":{"min":1e-05,)"));
  EXPECT_EQ(ToJson(ParseOwnEncoding(json).encoding), json);
  EXPECT_EQ(ToJson(ParseOwnEncoding(DeclaredEncoding("needs", "{}")).encoding),
            ToJson(ParseOwnEncoding(DeclaredEncoding()).encoding));
}

TEST(OwnNeedTest, FieldsThatTheJobLacksMeetThem) {
  const auto needs = ParseOwnEncoding(DeclaredEncoding("needs", kNeeds)).encoding.needs;
  const auto unmet = [&](const catalog::Values& job) {
    std::vector<std::string> fields;
    for (const OwnNeed* need : UnmetNeeds(needs, job)) fields.push_back(need->field);
    return fields;
  };
  const auto whole = [](std::int64_t value) { return catalog::Value(value); };
  EXPECT_THAT(unmet({}), IsEmpty());
  EXPECT_THAT(unmet({{"model.heads", whole(4)}, {"model.layers", whole(1)}, {"train.lr", 0.01}}),
              IsEmpty());
  EXPECT_THAT(unmet({{"model.heads", whole(5)}, {"model.layers", whole(5)}, {"train.lr", 0.011}}),
              ElementsAre("model.heads", "model.layers", "train.lr"));
  EXPECT_THAT(unmet({{"model.mask", std::string("none")}}), ElementsAre("model.mask"));
  EXPECT_THAT(unmet({{"model.layers", std::string("4")}}), ElementsAre("model.layers"));
}

TEST(OwnNeedTest, TheDeclarationSaysWhatIsWrong) {
  const std::string needs = "the declaration's needs";
  EXPECT_THAT(NeedProblem("[]"), HasSubstr(needs + " must be an object of fields"));
  EXPECT_THAT(NeedProblem("null"), HasSubstr("must be an object of fields"));
  EXPECT_EQ(NeedProblem(R"({"model.head":[4]})"),
            needs +
                " name \"model.head\"; did you mean model.heads? allowed: a field of the "
                "model, the task or the training, such as model.heads");
  for (const char* other : {"pe.base", "pe.options", "seed", "task", "", "head_ablation.method"}) {
    EXPECT_THAT(NeedProblem("{\"" + std::string(other) + "\":[4]}"),
                testing::AllOf(HasSubstr(needs + " name \"" + other + "\"; "),
                               HasSubstr("allowed: a field of the model")));
  }
  EXPECT_LT(NeedProblem("{\"" + std::string(50000, 'a') + "\":[4]}").size(), 300u);
  const std::pair<const char*, const char*> wrong[] = {
      {R"({"model.dropout_sites":[["ffn"]]})", "name model.dropout_sites, which has a list as"},
      {R"({"model.mask":"causal"})", "model.mask is \"causal\"; allowed: a list of values, or {"},
      {R"({"model.heads":4})", "model.heads is 4; allowed: a list of values, or {\"min\": NUMBER"},
      {R"({"model.heads":[]})", "model.heads has 0 values; allowed: 1 to 32"},
      {R"({"model.mask":["causel"]})",
       "model.mask is \"causel\"; allowed: one of causal, none; did you mean causal?"},
      {R"({"model.mask":[true]})", "model.mask is true; allowed: one of causal, none"},
      {R"({"model.heads":[4.0]})", "model.heads is 4.0; allowed: an integer from 1 to 128"},
      {R"({"model.heads":["4"]})", "model.heads is \"4\"; allowed: an integer"},
      {R"({"model.heads":[129]})", "model.heads is 129; allowed: an integer from 1 to 128"},
      {R"({"model.heads":[[4]]})", "model.heads is a list; allowed: an integer"},
      {R"({"model.final_norm":[1]})", "model.final_norm is 1; allowed: true or false"},
      {R"({"model.heads":[4,8,4]})", "model.heads names 4 twice"},
      {R"({"model.mask":{"min":0,"max":1}})",
       "model.mask must be a list of values, not a range; allowed: one of causal, none"},
      {R"({"model.heads":{"min":1}})", "model.heads.max must be a number"},
      {R"({"model.heads":{"min":"1","max":2}})", "model.heads.min must be a number"},
      {R"({"model.heads":{"min":1,"max":2,"most":2}})", "unknown member \"most\""},
      {R"({"model.heads":{"min":1.5,"max":2}})", "model.heads: min and max must be integers"},
      {R"({"model.heads":{"min":3,"max":2}})", "from 3 to 2, which leaves no value; allowed: an"},
      {R"({"model.heads":{"min":200,"max":300}})", "which leaves no value; allowed: an integer"},
      {R"({"train.lr":{"min":0,"max":1e300}})", "train.lr.max must be between -1e15 and 1e15"}};
  for (const auto& [json, said] : wrong) {
    EXPECT_THAT(NeedProblem(json), testing::AllOf(HasSubstr(needs), HasSubstr(said))) << json;
  }
}

TEST(OwnNeedTest, TheDeclarationIsBounded) {
  std::string fields, values;
  for (int i = 0; i < 33; ++i) {
    fields += (i > 0 ? ",\"f" : "\"f") + std::to_string(i) + "\":[1]";
    values += (i > 0 ? "," : "") + std::to_string(i + 1);
  }
  EXPECT_EQ(NeedProblem("{" + fields + "}"),
            "the declaration's needs name 33 fields; at most 32 are allowed");
  EXPECT_THAT(NeedProblem(R"({"model.heads":[)" + values + "]}"),
              HasSubstr("model.heads has 33 values; allowed: 1 to 32"));
}

SweepResult ParseWithNeeds(const std::string& rest, const std::string& needs = kNeeds) {
  return ParseSweep("name: a\npe: [rope, {name: own, file: mine.pt}]\ntask: distance\n" + rest,
                    {{"file:mine.pt", DeclaredEncoding("needs", needs)}});
}

TEST(OwnNeedTest, ASweepThatMeetsThemHasTheSameJobs) {
  const std::string rest = "model: {layers: 4}\n";
  const SweepResult with = ParseWithNeeds(rest), without = ParseWithNeeds(rest, "{}");
  ASSERT_THAT(Complaints(with), IsEmpty());
  ASSERT_THAT(Complaints(without), IsEmpty());
  EXPECT_EQ(with.sweep->At(1)->key, without.sweep->At(1)->key);
  EXPECT_EQ(with.sweep->At(1)->canonical_json, without.sweep->At(1)->canonical_json);
}

TEST(OwnNeedTest, ASweepThatDoesNotMeetThemIsRefused) {
  // The place is that of the field if the document sets it, else that of the encoding.
  EXPECT_THAT(Complaints(ParseWithNeeds("")),
              ElementsAre("a.yaml:2:12: model.layers is 6; the encoding decay needs model.layers "
                          "from 1 to 4"));
  EXPECT_THAT(Complaints(ParseWithNeeds("model: {layers: 5}\n")),
              ElementsAre(HasSubstr("a.yaml:4:17: model.layers is 5; the encoding decay needs ")));
  const SweepResult crossed = ParseWithNeeds(
      "model: {layers: 2}\naxes: {model.heads: [4, 8, 32], model.mask: [causal, none]}\n");
  EXPECT_THAT(Complaints(crossed),
              ElementsAre("a.yaml:5:28: model.heads is 32; the encoding decay needs model.heads "
                          "8, 4 or 16",
                          "a.yaml:5:54: model.mask is none; the encoding decay needs model.mask "
                          "causal"));
  EXPECT_EQ(crossed.violations[0].value, "32");
  EXPECT_EQ(crossed.violations[0].allowed, "8, 4 or 16");
  EXPECT_EQ(crossed.violations[0].path, "axes.model.heads[2]");
  EXPECT_THAT(Complaints(ParseWithNeeds("model: {layers: 2}\n"
                                        "axes: {model.mask: [causal, none]}\n"
                                        "exclude: [{pe: own, model.mask: none}]\n")),
              IsEmpty());
  EXPECT_THAT(Complaints(ParseWithNeeds("protocol: [clean, published]\nmodel: {layers: 2}\n",
                                        R"({"model.mask":["causal"]})")),
              ElementsAre(HasSubstr("under protocol published, model.mask is none; the encoding")));
}

}  // namespace
}  // namespace pelab::experiment
