#include "worker/agent/packs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

namespace pelab::agent {
namespace {

using ::testing::ElementsAre;

v1::Assignment Fresh(std::int64_t job_id) {
  v1::Assignment assignment;
  assignment.set_attempt_id(100 + job_id);
  assignment.set_job_id(job_id);
  return assignment;
}
v1::Assignment Began(std::int64_t job_id, int packing, int threads = 1, int micro_batch = 0) {
  v1::Assignment assignment = Fresh(job_id);
  assignment.mutable_execution()->set_threads(threads);
  assignment.mutable_execution()->set_micro_batch(micro_batch);
  assignment.mutable_execution()->set_packing(packing);
  return assignment;
}

std::vector<std::vector<std::int64_t>> Groups(const std::vector<v1::Assignment>& assignments) {
  std::vector<std::vector<std::int64_t>> groups;
  for (const auto& group : ByTrainer(assignments)) {
    groups.emplace_back();
    for (const v1::Assignment& each : group) groups.back().push_back(each.job_id());
  }
  return groups;
}

TEST(ByTrainer, TakesTogetherWhatHasNotBegun) {
  EXPECT_THAT(Groups({Fresh(1), Fresh(2), Fresh(3)}), ElementsAre(ElementsAre(1, 2, 3)));
  EXPECT_THAT(Groups({Fresh(1)}), ElementsAre(ElementsAre(1)));
  EXPECT_TRUE(Groups({}).empty());
}

TEST(ByTrainer, PutsApartWhatBeganOtherwise) {
  EXPECT_THAT(Groups({Fresh(1), Began(2, 8), Fresh(3), Began(4, 8), Began(5, 4), Began(6, 8, 2),
                      Began(7, 8, 1, 32), Began(8, 1), Began(9, 1)}),
              ElementsAre(ElementsAre(1, 3), ElementsAre(2, 4), ElementsAre(5), ElementsAre(6),
                          ElementsAre(7), ElementsAre(8, 9)));
}

TEST(ByTrainer, ABatchOfTwoSeedsHasRoomForTwo) {
  EXPECT_THAT(Groups({Began(1, 2), Began(2, 2), Began(3, 2), Began(4, 2), Began(5, 2)}),
              ElementsAre(ElementsAre(1, 2), ElementsAre(3, 4), ElementsAre(5)));
}

TEST(ByTrainer, AnalysesOfKeptWeightsGoAlone) {
  v1::Assignment kept = Began(2, 1);
  kept.mutable_weights()->set_sha256("ab");
  v1::Assignment other = kept;
  other.set_job_id(3);
  EXPECT_THAT(Groups({Began(1, 1), kept, other, Began(4, 1)}),
              ElementsAre(ElementsAre(1, 4), ElementsAre(2), ElementsAre(3)));
}

TEST(ByTrainer, TheSameJobIsNeverTakenTwice) {
  EXPECT_THAT(Groups({Fresh(1), Fresh(1), Fresh(2)}),
              ElementsAre(ElementsAre(1, 2), ElementsAre(1)));
  v1::Assignment elsewhere = Fresh(4);
  elsewhere.set_slot(1);
  EXPECT_THAT(Groups({Fresh(3), elsewhere}), ElementsAre(ElementsAre(3), ElementsAre(4)));
}

}  // namespace
}  // namespace pelab::agent
