#include "server/sched/ready_queue.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace pelab::sched {
namespace {

store::ReadyJob Job(std::int64_t id, std::int64_t sweep, std::int64_t ordinal, int priority = 0,
                    const std::string& device = "any") {
  return {.job_id = id,
          .sweep_id = sweep,
          .ordinal = ordinal,
          .priority = priority,
          .requirement = {.device_kind = device}};
}

class ReadyQueueTest : public testing::Test {
 protected:
  // The picked job's id, 0 where there is none; counts it as running.
  std::int64_t Pick(const std::string& device = "") {
    const auto fits = [&](const store::Requirement& r) {
      return device.empty() || r.device_kind == device;
    };
    const auto job = queue_.Pick(fits, [this](std::int64_t sweep) { return running_[sweep]; });
    if (!job) return 0;
    running_[job->sweep_id] += 1;
    return job->job_id;
  }
  ReadyQueue queue_;
  std::map<std::int64_t, int> running_;
};

TEST_F(ReadyQueueTest, ASweepGoesInItsOrder) {
  for (const int id : {3, 1, 2}) queue_.Add(Job(id, 1, id));
  EXPECT_EQ(Pick(), 1);
  EXPECT_EQ(Pick(), 2);
  EXPECT_EQ(Pick(), 3);
  EXPECT_EQ(Pick(), 0);
  EXPECT_TRUE(queue_.empty());
}

TEST_F(ReadyQueueTest, PriorityComesFirst) {
  queue_.Add(Job(1, 1, 0, -5));
  queue_.Add(Job(2, 2, 0, 10));
  queue_.Add(Job(3, 3, 0, 0));
  EXPECT_EQ(Pick(), 2);
  EXPECT_EQ(Pick(), 3);
  EXPECT_EQ(Pick(), 1);
}

TEST_F(ReadyQueueTest, SweepsShareFairly) {
  for (int i = 0; i < 4; ++i) queue_.Add(Job(10 + i, 1, i));
  for (int i = 0; i < 4; ++i) queue_.Add(Job(20 + i, 2, i));
  running_[1] = 1;  // an older sweep that has a slot already
  EXPECT_EQ(Pick(), 20);
  EXPECT_EQ(Pick(), 10);
  EXPECT_EQ(Pick(), 21);
  EXPECT_EQ(Pick(), 11);
}

TEST_F(ReadyQueueTest, WhatDoesNotFitIsPassedOver) {
  queue_.Add(Job(1, 1, 0, 5, "gpu"));
  queue_.Add(Job(2, 1, 1, 0, "cpu"));
  EXPECT_EQ(Pick("cpu"), 2);
  EXPECT_EQ(Pick("cpu"), 0);
  EXPECT_EQ(Pick("gpu"), 1);
}

TEST_F(ReadyQueueTest, AddingAgainMovesAndRemovingForgets) {
  queue_.Add(Job(1, 1, 0));
  queue_.Add(Job(2, 1, 1));
  queue_.Add(Job(2, 1, 1, 9));
  EXPECT_EQ(queue_.size(), 2u);
  EXPECT_EQ(Pick(), 2);
  EXPECT_TRUE(queue_.Remove(1));
  EXPECT_FALSE(queue_.Remove(1));
  EXPECT_EQ(Pick(), 0);
}

}  // namespace
}  // namespace pelab::sched
