#include "core/views/job_counts.h"

#include <gtest/gtest.h>

namespace pelab::views {
namespace {

TEST(CountJob, EveryStateHasItsPlace) {
  v1::JobCounts counts;
  for (int state = v1::JobState_MIN; state <= v1::JobState_MAX; ++state) {
    CountJob(static_cast<v1::JobState>(state), /*fresh=*/false, counts);
  }
  EXPECT_EQ(counts.total(), 7u);
  EXPECT_EQ(counts.new_jobs(), 2u);  // never seen, cancelled
  EXPECT_EQ(counts.in_flight(), 3u);
  EXPECT_EQ(counts.stored(), 1u);
  EXPECT_EQ(counts.failed_earlier(), 1u);
}

TEST(CountJob, AFreshSubmissionMakesEveryJobNew) {
  v1::JobCounts counts;
  CountJob(v1::JOB_STATE_SUCCEEDED, /*fresh=*/true, counts);
  CountJob(v1::JOB_STATE_FAILED, /*fresh=*/true, counts);
  EXPECT_EQ(counts.total(), 2u);
  EXPECT_EQ(counts.new_jobs(), 2u);
}

}  // namespace
}  // namespace pelab::views
