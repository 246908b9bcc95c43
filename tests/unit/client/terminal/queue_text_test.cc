#include "client/terminal/queue_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace pelab::client {
namespace {

using testing::HasSubstr;

v1::QueueRow Row(const std::string& name, const std::vector<std::string>& phases) {
  v1::QueueRow row;
  row.set_name(name);
  row.set_settings_json(R"({"max_allocations":4,"time_limit":"4h","workdir":"/w","worker":[]})");
  row.set_reported_at_ms(1'700'000'000'000);
  for (const std::string& phase : phases) {
    v1::Allocation& one = *row.add_allocations();
    one.set_id("71");
    one.set_phase(phase);
    one.set_reason("n1\x1b[31m");
  }
  return row;
}

// A queue with these limits, and 9 jobs that wait for its device.
QueueWish WishOf(const v1::QueueRow& row) {
  const queues::Queue queue{.name = row.name(), .max_allocations = 4, .max_waiting = 2};
  return WishesOf({row}, {queue}, {{.waiting_jobs = 9, .free_slots = 1}}).front();
}

TEST(QueueTextTest, JsonCountsAllocationsByPhase) {
  const render::Json json = QueueJson(Row("gpu", {"waiting", "running", "running"}));
  EXPECT_EQ(json["state"], "active");
  EXPECT_EQ(json["waiting"], 1);
  EXPECT_EQ(json["running"], 2);
  EXPECT_EQ(json["starting"], 0);
  EXPECT_TRUE(json["paused_reason"].is_null());
  EXPECT_EQ(json["settings"]["max_allocations"], 4);
  EXPECT_EQ(json["allocations"][2]["phase"], "running");
  for (const std::string& column : kQueueColumns) EXPECT_TRUE(json.contains(column)) << column;
}

TEST(QueueTextTest, TablesAreSafeToShow) {
  v1::QueueRow row = Row("gpu", {"running"});
  row.set_paused_reason("bad\x1b[31m");
  row.set_paused_at_ms(1'700'000'000'000);
  const std::string text = QueueTable({row}, {}) + AllocationTable(row, {});
  EXPECT_THAT(text, HasSubstr("queue gpu is paused since 2023-11-14 22:13:20 UTC: bad\\x1b[31m"));
  EXPECT_THAT(text, HasSubstr("n1\\x1b[31m"));
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
  row.set_removing(true);
  EXPECT_THAT(QueueTable({row}, {}), HasSubstr("queue gpu goes when pelab-scale has cancelled"));
}

TEST(QueueTextTest, WishesSayWhatHoldsThemBack) {
  const QueueWish free = WishOf(Row("gpu", {}));
  EXPECT_EQ(free.wants, 4);
  EXPECT_EQ(free.submits, 2);
  EXPECT_EQ(free.why, "max_waiting");
  const QueueWish full = WishOf(Row("gpu", {"running", "running", "running"}));
  EXPECT_EQ(full.submits, 1);
  EXPECT_EQ(full.why, "max_allocations");
  v1::QueueRow row = Row("gpu", {"waiting", "starting"});
  EXPECT_EQ(WishOf(row).coming, 2);
  row.set_paused_reason("maintenance");
  EXPECT_EQ(WishOf(row).submits, 0);
  EXPECT_EQ(WishOf(row).why, "paused: maintenance");
  row.set_removing(true);
  EXPECT_EQ(WishOf(row).why, "it is being removed");
  row = Row("gpu", {});
  row.set_reported_at_ms(0);
  EXPECT_EQ(WishOf(row).why, "pelab-scale has not reported yet");
}

TEST(QueueTextTest, QueuesOfOneDeviceShareWhatIsComing) {
  const queues::Queue a{.name = "a", .slots = 2};
  const queues::Queue b{.name = "b", .device = "cpu"};
  const queues::Queue c{.name = "c"};
  const auto wishes = WishesOf({Row("a", {"waiting"}), Row("b", {"waiting"}), Row("c", {})},
                               {a, b, c}, {{}, {}, {}});
  EXPECT_EQ(wishes[0].coming, 2);
  EXPECT_EQ(wishes[1].coming, 1);
  EXPECT_EQ(wishes[2].coming, 2);
}

}  // namespace
}  // namespace pelab::client
