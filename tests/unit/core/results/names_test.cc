#include "core/results/names.h"

#include <gtest/gtest.h>

namespace pelab::results {
namespace {

TEST(NamesTest, AsTheViewsWriteThem) {
  EXPECT_EQ(StateName(v1::JOB_STATE_SUCCEEDED), "succeeded");
  EXPECT_EQ(StateName(v1::SWEEP_STATE_EXPANDING), "expanding");
  EXPECT_EQ(OutcomeName(v1::ATTEMPT_OUTCOME_LOST), "lost");
  EXPECT_EQ(OutcomeName(v1::ATTEMPT_OUTCOME_UNSPECIFIED), "open");
  EXPECT_EQ(StateName(v1::JOB_STATE_UNSPECIFIED), "unspecified");
}

}  // namespace
}  // namespace pelab::results
