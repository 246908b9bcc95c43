#include "core/db/read/conditions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>

#include "core/base/strings.h"
#include "core/db/read/reader.h"
#include "tests/unit/core/db/database_fixture.h"

namespace pelab::db {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class ConditionsTest : public ::testing::Test {
 protected:
  ConditionsTest() {
    rope_ = file_.AddJob(
        {.key = "a1",
         .pe = "rope",
         .seed = 0,
         .spec_json = R"({"model":{"attention_bias":true,"dropout_sites":["attention","output"],)"
                      R"("layers":2,"mask":"causal"},)"
                      R"("pe":{"base":10000,"name":"rope"},"seed":0,"task":{"name":"distance"},)"
                      R"("train":{"lr":0.0001}})"});
    nope_ = file_.AddJob(
        {.key = "b1",
         .pe = "nope",
         .seed = 5,
         .spec_json =
             R"({"model":{"attention_bias":false,"dropout_sites":[],"layers":10,"mask":"none"},)"
             R"("pe":{"name":"nope"},"seed":5,"task":{"name":"distance"},"train":{"lr":0.0003}})"});
    file_.Summarize(rope_, 2, 240, 240, 300);
  }

  absl::StatusOr<std::vector<std::int64_t>> Select(const std::string& field, Operator op,
                                                   const std::string& value) {
    v1::ListJobsRequest request;
    static constexpr const char* kSymbols[] = {"=", "!=", "<", "<=", ">", ">=", "~", "!~"};
    std::string quoted;
    for (const char c : value) quoted += c == '\'' ? std::string("''") : std::string(1, c);
    request.mutable_filter()->set_where(
        Concat(field, kSymbols[static_cast<int>(op)], "'", quoted, "'"));
    auto reader = Reader::Open(file_.path());
    if (!reader.ok()) return reader.status();
    auto response = (*reader)->ListJobs(request);
    if (!response.ok()) return response.status();
    std::vector<std::int64_t> ids;
    for (const auto& job : response->jobs()) ids.push_back(job.job_id());
    return ids;
  }
  std::vector<std::int64_t> Found(const std::string& field, Operator op, const std::string& value) {
    auto ids = Select(field, op, value);
    EXPECT_TRUE(ids.ok()) << ids.status();
    return ids.value_or(std::vector<std::int64_t>{-1});
  }
  std::string Error(const std::string& field, Operator op, const std::string& value) {
    auto ids = Select(field, op, value);
    EXPECT_EQ(ids.status().code(), absl::StatusCode::kInvalidArgument);
    return std::string(ids.status().message());
  }

  DatabaseForTest file_;
  std::int64_t rope_ = 0, nope_ = 0;
};

TEST_F(ConditionsTest, ColumnsOfJobs) {
  EXPECT_THAT(Found("pe", Operator::kEqual, "rope"), ElementsAre(rope_));
  EXPECT_THAT(Found("pe", Operator::kNotEqual, "rope"), ElementsAre(nope_));
  EXPECT_THAT(Found("seed", Operator::kGreaterOrEqual, "1"), ElementsAre(nope_));
  EXPECT_THAT(Found("seed", Operator::kLess, "5"), ElementsAre(rope_));
  EXPECT_THAT(Found("test_accuracy", Operator::kEqual, "0.8"), ElementsAre(rope_));
  EXPECT_THAT(Found("test_accuracy", Operator::kGreater, "0.8"), IsEmpty());
}

TEST_F(ConditionsTest, AMissingValueIsNotThatValue) {
  EXPECT_THAT(Found("test_accuracy", Operator::kNotEqual, "0.8"), ElementsAre(nope_));
  EXPECT_THAT(Found("test_accuracy", Operator::kLess, "0.9"), ElementsAre(rope_));
  EXPECT_THAT(Found("pe.base", Operator::kNotEqual, "10000"), ElementsAre(nope_));
}

TEST_F(ConditionsTest, NumbersOfTheSpecInAnyNotation) {
  EXPECT_THAT(Found("train.lr", Operator::kEqual, "1e-4"), ElementsAre(rope_));
  EXPECT_THAT(Found("train.lr", Operator::kEqual, "0.00010"), ElementsAre(rope_));
  EXPECT_THAT(Found("train.lr", Operator::kLessOrEqual, "3e-4"), ElementsAre(rope_, nope_));
  EXPECT_THAT(Found("train.lr", Operator::kLess, "3e-4"), ElementsAre(rope_));
  EXPECT_THAT(Found("train.lr", Operator::kGreater, "1e-4"), ElementsAre(nope_));
  EXPECT_THAT(Found("model.layers", Operator::kGreater, "9"), ElementsAre(nope_))
      << "as numbers, not as text";
  EXPECT_THAT(Found("pe.base", Operator::kEqual, "10000"), ElementsAre(rope_));
}

TEST_F(ConditionsTest, OtherTypesOfTheSpec) {
  EXPECT_THAT(Found("model.mask", Operator::kEqual, "none"), ElementsAre(nope_));
  EXPECT_THAT(Found("model.attention_bias", Operator::kEqual, "true"), ElementsAre(rope_));
  EXPECT_THAT(Found("model.dropout_sites", Operator::kEqual, "output+attention"),
              ElementsAre(rope_));
  EXPECT_THAT(Found("model.dropout_sites", Operator::kEqual, "[]"), ElementsAre(nope_));
}

TEST_F(ConditionsTest, SetsOfIntegersOfTheSpec) {
  const std::int64_t partial = file_.AddJob(
      {.key = "c1",
       .pe = "partial_rope",
       .seed = 0,
       .spec_json = R"({"model":{"layers":2},"pe":{"head_list":[0,5],"name":"partial_rope",)"
                    R"("select":"list"},)"
                    R"("seed":0,"task":{"name":"distance"},"train":{"lr":0.0001}})"});
  for (const char* text : {"[0, 5]", "5+0", "0,5"}) {
    EXPECT_THAT(Found("pe.head_list", Operator::kEqual, text), ElementsAre(partial)) << text;
  }
  EXPECT_THAT(Found("pe.head_list", Operator::kEqual, "0"), IsEmpty());
  EXPECT_THAT(Error("pe.head_list", Operator::kEqual, "0+five"),
              HasSubstr("a list of different integers"));
  EXPECT_THAT(Error("pe.head_list", Operator::kEqual, "1+1"),
              HasSubstr("a list of different integers"));
  EXPECT_THAT(Error("pe.head_list", Operator::kLess, "1"), HasSubstr("use = or !="));
}

TEST_F(ConditionsTest, Patterns) {
  EXPECT_THAT(Found("pe", Operator::kMatches, "ro*"), ElementsAre(rope_));
  EXPECT_THAT(Found("pe", Operator::kMatches, "[nr]op?"), ElementsAre(rope_, nope_));
  EXPECT_THAT(Found("pe", Operator::kMatchesNot, "ro*"), ElementsAre(nope_));
  EXPECT_THAT(Found("model.mask", Operator::kMatches, "n*e"), ElementsAre(nope_));
  EXPECT_THAT(Found("model.mask", Operator::kMatchesNot, "n*e"), ElementsAre(rope_));
  EXPECT_THAT(Found("error", Operator::kMatches, "*"), IsEmpty()) << "no text matches nothing";
}

TEST_F(ConditionsTest, WhetherItDiverged) {
  EXPECT_THAT(Found("diverged", Operator::kEqual, "true"), IsEmpty());
  file_.Execute("UPDATE jobs SET diverged = 1, trained = 1 WHERE pe = 'rope'");
  EXPECT_THAT(Found("diverged", Operator::kEqual, "true"), ElementsAre(rope_));
  EXPECT_THAT(Found("diverged", Operator::kNotEqual, "true"), ElementsAre(nope_));
  EXPECT_THAT(Found("diverged", Operator::kEqual, "0"), ElementsAre(nope_));
  EXPECT_THAT(Error("diverged", Operator::kEqual, "yes"), HasSubstr("is not true or false"));
  EXPECT_THAT(Error("diverged", Operator::kLess, "1"), HasSubstr("use = or !="));
}

TEST_F(ConditionsTest, WhatIsWorkedOutOfTheResults) {
  EXPECT_THAT(Found("generalisation_gap", Operator::kLess, "10"), IsEmpty()) << "not measured";
  file_.Execute("UPDATE jobs SET train_eval_correct = 270, train_eval_total = 300");
  EXPECT_THAT(Found("generalisation_gap", Operator::kLess, "0.11"), ElementsAre(rope_));
  EXPECT_THAT(Found("generalisation_gap", Operator::kLess, "0.09"), IsEmpty());
  EXPECT_THAT(Found("epochs_to(0.8)", Operator::kLessOrEqual, "2"), IsEmpty()) << "no curve";
  EXPECT_THAT(Found("gini", Operator::kGreater, "0"), IsEmpty()) << "no ablation";
  EXPECT_THAT(Error("epochs_to", Operator::kLess, "3"), HasSubstr("epochs_to(0.9) <= 20"));
  EXPECT_THAT(Error("seed(1)", Operator::kLess, "3"), HasSubstr("only epochs_to(x)"));
  EXPECT_THAT(Error("gini", Operator::kGreater, "high"), HasSubstr("not a number"));
}

TEST_F(ConditionsTest, ValuesAreBoundNotPasted) {
  EXPECT_THAT(Found("pe", Operator::kEqual, "x' OR '1'='1"), IsEmpty());
  EXPECT_THAT(Found("model.mask", Operator::kEqual, "x\" OR 1 --"), IsEmpty());
}

TEST_F(ConditionsTest, ErrorsNameFieldValueAndWhatIsAllowed) {
  EXPECT_THAT(Error("tran.lr", Operator::kEqual, "1"), HasSubstr("did you mean train.lr"));
  EXPECT_THAT(Error("xyzzy", Operator::kEqual, "1"), HasSubstr("known: job_id, key"));
  EXPECT_THAT(Error("pe", Operator::kLess, "rope"), HasSubstr("use = or !="));
  EXPECT_THAT(Error("model.mask", Operator::kGreater, "none"), HasSubstr("use = or !="));
  EXPECT_THAT(Error("seed", Operator::kEqual, "one"), HasSubstr("\"one\" is not a number"));
  EXPECT_THAT(Error("train.lr", Operator::kEqual, "nan"), HasSubstr("not a number"));
  EXPECT_THAT(Error("model.attention_bias", Operator::kEqual, "yes"), HasSubstr("true or false"));
  EXPECT_THAT(Error("model.dropout_sites", Operator::kEqual, "attention+nose"),
              HasSubstr("a list out of"));
  EXPECT_THAT(Error("seed", Operator::kMatches, "1*"), HasSubstr("needs a text"));
  EXPECT_THAT(Error("train.lr", Operator::kMatches, "1*"), HasSubstr("needs a text"));
}

}  // namespace
}  // namespace pelab::db
