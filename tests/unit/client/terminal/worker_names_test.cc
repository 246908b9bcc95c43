#include "client/terminal/worker_names.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace pelab::client {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

v1::WorkerRow Worker(const std::string& id, const std::string& name) {
  v1::WorkerRow row;
  row.set_worker_id(id);
  row.set_name(name);
  return row;
}

TEST(WorkerNames, AreNamesAndTheBeginningOfAnIdWhereTwoHaveOne) {
  const std::vector<v1::WorkerRow> workers = {
      Worker("0f3a77c2-1", "left"), Worker("9b1c20d4-2", "box"), Worker("9b1c20d4-3", "box")};
  const auto labels = WorkerLabels(workers);
  EXPECT_EQ(labels.at("0f3a77c2-1"), "left");
  EXPECT_EQ(labels.at("9b1c20d4-2"), "box (9b1c20d4-2)");
  EXPECT_EQ(labels.at("9b1c20d4-3"), "box (9b1c20d4-3)");
  EXPECT_EQ(ShortId(workers[0], workers), "0f3a77") << "six characters are enough";
}

TEST(WorkerNames, AWorkerIsSilentOnceItHasMissedAHeartbeat) {
  v1::WorkerRow idle = Worker("aaaaaaaa", "idle");
  idle.set_silent_ms(60'000);  // holds no jobs that could be given away
  v1::WorkerRow fresh = Worker("bbbbbbbb", "fresh");
  fresh.set_silent_ms(5'000);
  fresh.set_lease_left_ms(15'000);
  v1::WorkerRow silent = Worker("cccccccc", "gpu1");
  silent.set_silent_ms(8'400);
  silent.set_lease_left_ms(11'600);
  EXPECT_THAT(SilentWorkers({idle, fresh, silent}),
              ElementsAre("worker gpu1 not heard of for 8 s; its jobs are given away in 11 s"));
  EXPECT_THAT(SilentWorkers({}), IsEmpty());
}

}  // namespace
}  // namespace pelab::client
