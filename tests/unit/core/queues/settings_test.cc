#include "core/queues/settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "core/queues/queues_file.h"
#include "core/queues/wanted.h"
#include "tests/support/status_matchers.h"

namespace pelab::queues {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr char kSmall[] = R"({"time_limit":"4h","workdir":"/w","worker":[]})";

std::string WrongWith(const std::string& json) {
  return std::string(ParseSettings("a", json).status().message());
}

TEST(SettingsTest, OnlyWhatIsNotAtItsDefaultIsWritten) {
  const auto queue = ParseSettings("a", kSmall);
  ASSERT_THAT(queue, IsOk());
  EXPECT_EQ(queue->name, "a");
  EXPECT_EQ(SettingsJson(*queue), kSmall);
}

TEST(SettingsTest, EveryKeyGoesThereAndBack) {
  const auto queues = ParseQueues(R"(
[queue.gpu]
time_limit = "1h30m"
max_allocations = 8
max_waiting = 3
slots = 4
pack = 16
device = "cpu"
memory = "40GiB"
idle_exit = "1500ms"
start_timeout = "20m"
sbatch = ["--partition=gpu", "--comment=a \"b\" ü"]
program = "/opt/pelab-worker"
workdir = "/scratch/me"
worker = ["--server", "gpu-head:7470"]
)",
                                  "q.toml");
  ASSERT_THAT(queues, IsOk());
  const Queue& queue = queues->front();
  const std::string json = SettingsJson(queue);
  const auto back = ParseSettings("gpu", json);
  ASSERT_THAT(back, IsOk());
  EXPECT_EQ(*back, queue);
  for (const char* part :
       {R"("idle_exit":"1.5s")", R"("memory":"42949672960")", R"("time_limit":"1h30m")"}) {
    EXPECT_THAT(json, HasSubstr(part));
  }
}

TEST(SettingsTest, WhatIsWrongIsNamed) {
  EXPECT_EQ(WrongWith("5"), "the settings of queue a are no JSON object");
  EXPECT_EQ(WrongWith("{"), "the settings of queue a are no JSON object");
  EXPECT_EQ(WrongWith(R"({"time_limit":"4h","workdir":"/w"})"), "queue a: it lacks worker");
  EXPECT_THAT(WrongWith(R"({"time_limit":4,"max_waiting":1.5,"sbatch":[1],"worker":["a\nb"]})"),
              AllOf(HasSubstr("max_waiting must be an integer from 1 to 100; "),
                    HasSubstr("sbatch must be a list of texts"),
                    HasSubstr("time_limit must be a time such as \"4h\", \"90m\" or \"30s\", "
                              "not 4"),
                    HasSubstr("worker must be a text on one line, not \"a\\nb\""),
                    HasSubstr("it lacks workdir")));
  EXPECT_THAT(WrongWith(R"({"worker":[""]})"), HasSubstr("worker must be a text on one line"));
  EXPECT_THAT(WrongWith(R"({"slot":1})"), HasSubstr("did you mean slots?"));
  EXPECT_THAT(
      WrongWith(absl::StrCat("{\"program\":\"", std::string(kMostSettingsBytes, 'x'), "\"}")),
      HasSubstr("bytes; allowed: 65536"));
  for (const char* name : {"", "GPU", "a b", "a-b", "1a"}) {
    EXPECT_THAT(ParseSettings(name, kSmall).status(),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("a queue is named")))
        << name;
  }
}

TEST(WantedTest, LimitsOfTheQueue) {
  const Queue queue{.max_allocations = 4, .max_waiting = 2};
  EXPECT_EQ(MaySubmit(queue, 9, 0, 0), 2);
  EXPECT_EQ(MaySubmit(queue, 1, 0, 0), 1);
  EXPECT_EQ(MaySubmit(queue, 9, 1, 1), 1);
  EXPECT_EQ(MaySubmit(queue, 9, 0, 3), 1);
  EXPECT_EQ(MaySubmit(queue, 9, 3, 5), 0);
}

}  // namespace
}  // namespace pelab::queues
