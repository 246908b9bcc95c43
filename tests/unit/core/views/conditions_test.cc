#include "core/views/conditions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>

#include "core/views/reader.h"
#include "tests/unit/core/views/database_for_test.h"

namespace pelab::views {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Operator = v1::Condition::Operator;

class ConditionsTest : public ::testing::Test {
 protected:
  ConditionsTest() {
    rope_ = file_.AddJob(
        {.key = "a1",
         .pe = "rope",
         .seed = 0,
         .spec_json =
             R"({"model":{"attention_bias":true,"dropout_sites":["attention","output"],"layers":2,"mask":"causal"},)"
             R"("pe":{"base":10000,"name":"rope"},"seed":0,"task":{"name":"distance"},"train":{"lr":0.0001}})"});
    nope_ = file_.AddJob(
        {.key = "b1",
         .pe = "nope",
         .seed = 5,
         .spec_json =
             R"({"model":{"attention_bias":false,"dropout_sites":[],"layers":10,"mask":"none"},)"
             R"("pe":{"name":"nope"},"seed":5,"task":{"name":"distance"},"train":{"lr":0.0003}})"});
    file_.Summarise(rope_, 2, 240, 240, 300);
  }

  absl::StatusOr<std::vector<std::int64_t>> Select(const std::string& field, Operator op,
                                                   const std::string& value) {
    v1::ListJobsRequest request;
    v1::Condition& condition = *request.mutable_filter()->add_where();
    condition.set_field(field);
    condition.set_op(op);
    condition.set_value(value);
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
  EXPECT_THAT(Found("pe", v1::Condition::EQUAL, "rope"), ElementsAre(rope_));
  EXPECT_THAT(Found("pe", v1::Condition::NOT_EQUAL, "rope"), ElementsAre(nope_));
  EXPECT_THAT(Found("seed", v1::Condition::GREATER_OR_EQUAL, "1"), ElementsAre(nope_));
  EXPECT_THAT(Found("seed", v1::Condition::LESS, "5"), ElementsAre(rope_));
  EXPECT_THAT(Found("test_accuracy", v1::Condition::EQUAL, "0.8"), ElementsAre(rope_));
  EXPECT_THAT(Found("test_accuracy", v1::Condition::GREATER, "0.8"), IsEmpty());
}

TEST_F(ConditionsTest, AMissingValueIsNotThatValue) {
  EXPECT_THAT(Found("test_accuracy", v1::Condition::NOT_EQUAL, "0.8"), ElementsAre(nope_));
  EXPECT_THAT(Found("test_accuracy", v1::Condition::LESS, "0.9"), ElementsAre(rope_));
  EXPECT_THAT(Found("pe.base", v1::Condition::NOT_EQUAL, "10000"), ElementsAre(nope_));
}

TEST_F(ConditionsTest, NumbersOfTheSpecInAnyNotation) {
  EXPECT_THAT(Found("train.lr", v1::Condition::EQUAL, "1e-4"), ElementsAre(rope_));
  EXPECT_THAT(Found("train.lr", v1::Condition::EQUAL, "0.00010"), ElementsAre(rope_));
  EXPECT_THAT(Found("train.lr", v1::Condition::LESS_OR_EQUAL, "3e-4"), ElementsAre(rope_, nope_));
  EXPECT_THAT(Found("train.lr", v1::Condition::LESS, "3e-4"), ElementsAre(rope_));
  EXPECT_THAT(Found("train.lr", v1::Condition::GREATER, "1e-4"), ElementsAre(nope_));
  EXPECT_THAT(Found("model.layers", v1::Condition::GREATER, "9"), ElementsAre(nope_))
      << "as numbers, not as text";
  EXPECT_THAT(Found("pe.base", v1::Condition::EQUAL, "10000"), ElementsAre(rope_));
}

TEST_F(ConditionsTest, OtherTypesOfTheSpec) {
  EXPECT_THAT(Found("model.mask", v1::Condition::EQUAL, "none"), ElementsAre(nope_));
  EXPECT_THAT(Found("model.attention_bias", v1::Condition::EQUAL, "true"), ElementsAre(rope_));
  EXPECT_THAT(Found("model.dropout_sites", v1::Condition::EQUAL, "output+attention"),
              ElementsAre(rope_));
  EXPECT_THAT(Found("model.dropout_sites", v1::Condition::EQUAL, "[]"), ElementsAre(nope_));
}

TEST_F(ConditionsTest, SetsOfIntegersOfTheSpec) {
  const std::int64_t partial = file_.AddJob(
      {.key = "c1",
       .pe = "partial_rope",
       .seed = 0,
       .spec_json =
           R"({"model":{"layers":2},"pe":{"head_list":[0,5],"name":"partial_rope","select":"list"},)"
           R"("seed":0,"task":{"name":"distance"},"train":{"lr":0.0001}})"});
  for (const char* text : {"[0, 5]", "5+0", "0,5"}) {
    EXPECT_THAT(Found("pe.head_list", v1::Condition::EQUAL, text), ElementsAre(partial)) << text;
  }
  EXPECT_THAT(Found("pe.head_list", v1::Condition::EQUAL, "0"), IsEmpty());
  EXPECT_THAT(Error("pe.head_list", v1::Condition::EQUAL, "0+five"),
              HasSubstr("a list of different integers"));
  EXPECT_THAT(Error("pe.head_list", v1::Condition::EQUAL, "1+1"),
              HasSubstr("a list of different integers"));
  EXPECT_THAT(Error("pe.head_list", v1::Condition::LESS, "1"), HasSubstr("use = or !="));
}

TEST_F(ConditionsTest, ValuesAreBoundNotPasted) {
  EXPECT_THAT(Found("pe", v1::Condition::EQUAL, "x' OR '1'='1"), IsEmpty());
  EXPECT_THAT(Found("model.mask", v1::Condition::EQUAL, "x\" OR 1 --"), IsEmpty());
}

TEST_F(ConditionsTest, ErrorsNameFieldValueAndWhatIsAllowed) {
  EXPECT_THAT(Error("tran.lr", v1::Condition::EQUAL, "1"), HasSubstr("did you mean train.lr"));
  EXPECT_THAT(Error("x'--", v1::Condition::EQUAL, "1"), HasSubstr("known: job_id, key"));
  EXPECT_THAT(Error("pe", v1::Condition::LESS, "rope"), HasSubstr("use = or !="));
  EXPECT_THAT(Error("model.mask", v1::Condition::GREATER, "none"), HasSubstr("use = or !="));
  EXPECT_THAT(Error("seed", v1::Condition::EQUAL, "one"), HasSubstr("\"one\" is not a number"));
  EXPECT_THAT(Error("train.lr", v1::Condition::EQUAL, "nan"), HasSubstr("not a number"));
  EXPECT_THAT(Error("model.attention_bias", v1::Condition::EQUAL, "yes"),
              HasSubstr("true or false"));
  EXPECT_THAT(Error("model.dropout_sites", v1::Condition::EQUAL, "attention+nose"),
              HasSubstr("a list out of"));
  EXPECT_THAT(Error("pe", v1::Condition::OPERATOR_UNSPECIFIED, "rope"),
              HasSubstr("has no operator"));
}

}  // namespace
}  // namespace pelab::views
