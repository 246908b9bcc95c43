#include "core/db/read/job_counts.h"

#include <gtest/gtest.h>

namespace pelab::db {
namespace {

TEST(CountJob, EveryStateHasItsPlace) {
  v1::JobCounts counts;
  for (int state = v1::JobState_MIN; state <= v1::JobState_MAX; ++state) {
    CountJob({.state = static_cast<v1::JobState>(state)}, /*fresh=*/false, counts);
  }
  EXPECT_EQ(counts.total(), 7u);
  EXPECT_EQ(counts.new_jobs(), 2u);  // never seen; cancelled
  EXPECT_EQ(counts.in_flight(), 3u);
  EXPECT_EQ(counts.stored(), 1u);
  EXPECT_EQ(counts.failed_earlier(), 1u);
}

TEST(CountJob, AFreshSubmissionMakesEveryJobNew) {
  v1::JobCounts counts;
  CountJob({.state = v1::JOB_STATE_SUCCEEDED, .lacks_analyses = true}, /*fresh=*/true, counts);
  CountJob({.state = v1::JOB_STATE_FAILED}, /*fresh=*/true, counts);
  EXPECT_EQ(counts.total(), 2u);
  EXPECT_EQ(counts.new_jobs(), 2u);
  EXPECT_EQ(counts.analysis_impossible(), 0u);
}

TEST(CountJob, AnalysesThatAreLackingNeedTheWeights) {
  v1::JobCounts counts;
  for (const bool lacks : {false, true}) {
    for (const bool kept : {false, true}) {
      CountJob({v1::JOB_STATE_SUCCEEDED, lacks, kept}, /*fresh=*/false, counts);
    }
  }
  EXPECT_EQ(counts.stored(), 4u);
  EXPECT_EQ(counts.analysis_jobs(), 1u);
  EXPECT_EQ(counts.analysis_impossible(), 1u);
}

}  // namespace
}  // namespace pelab::db
