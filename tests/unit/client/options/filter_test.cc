#include "client/options/filter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace pelab::client {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

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
