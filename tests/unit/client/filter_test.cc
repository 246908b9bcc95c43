#include "client/filter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace pelab::client {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string Text(const v1::Condition& c) {
  return c.field() + "|" + v1::Condition::Operator_Name(c.op()) + "|" + c.value();
}

std::vector<std::string> Where(const std::string& text) {
  auto parsed = ParseWhere(text);
  EXPECT_TRUE(parsed.ok()) << parsed.status();
  std::vector<std::string> texts;
  for (const auto& condition : parsed.value_or(std::vector<v1::Condition>()))
    texts.push_back(Text(condition));
  return texts;
}

TEST(WhereTest, EveryOperator) {
  EXPECT_THAT(Where("a=1,b!=2,c<3,d<=4,e>5,f>=6"),
              ElementsAre("a|EQUAL|1", "b|NOT_EQUAL|2", "c|LESS|3", "d|LESS_OR_EQUAL|4",
                          "e|GREATER|5", "f|GREATER_OR_EQUAL|6"));
}

TEST(WhereTest, SpacesAndBrackets) {
  EXPECT_THAT(Where(" pe = rope , pe_label=rope(base=500,scale=2)"),
              ElementsAre("pe|EQUAL|rope", "pe_label|EQUAL|rope(base=500,scale=2)"));
  EXPECT_THAT(Where("model.dropout_sites=[attention,output]"),
              ElementsAre("model.dropout_sites|EQUAL|[attention,output]"));
  EXPECT_THAT(Where(""), ElementsAre());
}

TEST(WhereTest, ErrorsNameThePart) {
  for (const char* bad : {"pe", "pe=rope,", "=rope", "pe!rope", ","}) {
    const auto parsed = ParseWhere(bad);
    EXPECT_EQ(parsed.status().code(), absl::StatusCode::kInvalidArgument) << bad;
    EXPECT_THAT(std::string(parsed.status().message()), HasSubstr("FIELD=VALUE")) << bad;
  }
}

TEST(StatesTest, NamesAndOpen) {
  EXPECT_THAT(*ParseStates("failed"), ElementsAre(v1::JOB_STATE_FAILED));
  EXPECT_THAT(*ParseStates("succeeded, open"),
              ElementsAre(v1::JOB_STATE_SUCCEEDED, v1::JOB_STATE_QUEUED, v1::JOB_STATE_ASSIGNED,
                          v1::JOB_STATE_RUNNING));
  EXPECT_THAT(std::string(ParseStates("fialed").status().message()),
              HasSubstr("\"fialed\"; known: queued"));
  EXPECT_FALSE(ParseStates("unspecified").ok());
  EXPECT_FALSE(ParseStates("").ok());
}

TEST(OverrideTest, FieldAndValue) {
  const auto parsed = ParseOverride("task.name=a=b");
  ASSERT_TRUE(parsed.ok());
  EXPECT_EQ(parsed->field(), "task.name");
  EXPECT_EQ(parsed->value(), "a=b");
  EXPECT_FALSE(ParseOverride("train.lr").ok());
  EXPECT_FALSE(ParseOverride("=4").ok());
}

TEST(NamesTest, NoneIsEmpty) {
  EXPECT_THAT(*ParseNames("pe, task", "--group-by"), ElementsAre("pe", "task"));
  EXPECT_FALSE(ParseNames("pe,,task", "--group-by").ok());
}

}  // namespace
}  // namespace pelab::client
