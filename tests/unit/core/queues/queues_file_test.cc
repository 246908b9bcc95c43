#include "core/queues/queues_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "tests/support/status_matchers.h"

namespace pelab::queues {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

constexpr char kNeeded[] = "time_limit = \"4h\"\nworkdir = \"/w\"\nworker = []\n";

std::string Problem(const std::string& text) {
  return std::string(ParseQueues(text, "q.toml").status().message());
}

TEST(QueuesFileTest, EveryKey) {
  const auto queues = ParseQueues(R"(
[queue.gpu]
time_limit = "1h30m"
max_allocations = 8
max_waiting = 3
slots = 4
pack = 16
device = "gpu"
memory = "40GiB"
idle_exit = "2m"
start_timeout = "20m"
sbatch = ["--partition=gpu", "--gres=gpu:1"]
program = "/opt/pelab/bin/pelab-worker"
workdir = "/scratch/me"
worker = ["--server", "gpu-head:7470"]

[queue.cpu]
time_limit = "30m"
device = "cpu"
workdir = "/tmp"
worker = []
)",
                                  "q.toml");
  ASSERT_THAT(queues, IsOk());
  ASSERT_THAT(*queues, SizeIs(2));
  // TOML's tables are in the order of their names.
  const Queue& cpu = (*queues)[0];
  EXPECT_EQ(cpu.name, "cpu");
  EXPECT_EQ(cpu.time_limit, absl::Minutes(30));
  EXPECT_EQ(cpu.max_allocations, 1);
  EXPECT_EQ(cpu.max_waiting, 2);
  EXPECT_EQ(cpu.slots, 1);
  EXPECT_EQ(cpu.idle_exit, absl::Minutes(5));
  EXPECT_EQ(cpu.start_timeout, absl::Minutes(10));
  EXPECT_EQ(cpu.program, "pelab-worker");
  const Queue& gpu = (*queues)[1];
  EXPECT_EQ(gpu.name, "gpu");
  EXPECT_EQ(gpu.time_limit, absl::Minutes(90));
  EXPECT_EQ(gpu.max_allocations, 8);
  EXPECT_EQ(gpu.max_waiting, 3);
  EXPECT_EQ(gpu.slots, 4);
  EXPECT_EQ(gpu.pack, 16);
  EXPECT_EQ(gpu.memory_bytes, std::uint64_t{40} << 30);
  EXPECT_EQ(gpu.idle_exit, absl::Minutes(2));
  EXPECT_EQ(gpu.start_timeout, absl::Minutes(20));
  EXPECT_THAT(gpu.sbatch, ElementsAre("--partition=gpu", "--gres=gpu:1"));
  EXPECT_EQ(gpu.program, "/opt/pelab/bin/pelab-worker");
  EXPECT_EQ(gpu.workdir, "/scratch/me");
  EXPECT_THAT(gpu.worker, ElementsAre("--server", "gpu-head:7470"));
}

TEST(QueuesFileTest, EveryMistakeHasItsPlace) {
  const struct {
    const char* text;
    const char* message;
  } cases[] = {
      {"max_allocations = 0",
       "q.toml:5:19: max_allocations must be an integer from 1 to 10000, "
       "not 0"},
      {"max_allocations = 2.5", "q.toml:5:19: max_allocations must be an integer"},
      {"max_waiting = \"2\"",
       "q.toml:5:15: max_waiting must be an integer from 1 to 100, not "
       "\"2\""},
      {"slots = 5000", "q.toml:5:9: slots must be an integer from 1 to 1024, not 5000"},
      {"idle_exit = 5",
       "q.toml:5:13: idle_exit must be a time such as \"4h\", \"90m\" or "
       "\"30s\", not 5"},
      {"device = \"tpu\"", "q.toml:5:10: device must be \"gpu\" or \"cpu\", not \"tpu\""},
      {"memory = \"much\"", "q.toml:5:10: memory must be a size such as \"40GiB\", not \"much\""},
      {"sbatch = \"--x\"", "q.toml:5:10: sbatch must be a list of texts"},
      {"sbatch = [\"a\", 5]", "q.toml:5:16: sbatch must be a text on one line, not 5"},
      {"program = \"a\\nb\"", "q.toml:5:11: program must be a text on one line"},
      {"max_alocations = 2",
       "q.toml:5:1: unknown key \"max_alocations\"; did you mean "
       "max_allocations? known: device, idle_exit"},
      {"x = ", "q.toml:5:5: "},
  };
  for (const auto& one : cases) {
    EXPECT_THAT(Problem(absl::StrCat("[queue.a]\n", kNeeded, one.text, "\n")),
                HasSubstr(one.message))
        << one.text;
  }
}

TEST(QueuesFileTest, WhatIsNoQueue) {
  EXPECT_THAT(Problem(""), HasSubstr("q.toml: there is no queue"));
  EXPECT_THAT(Problem("[queues.a]\n"), HasSubstr("q.toml:1:2: unknown table \"queues\""));
  EXPECT_THAT(Problem("queue = 5\n"), HasSubstr("queue must be tables"));
  EXPECT_THAT(Problem("[queue.GPU]\n"), HasSubstr("a queue is named \"GPU\"; allowed: "));
  EXPECT_THAT(Problem("[queue.a]\ntime_limit = \"4h\"\n"), HasSubstr("queue a lacks workdir"));
  EXPECT_THAT(Problem("queue.a = 5\n"), HasSubstr("queue.a must be a table"));
  EXPECT_THAT(Problem(absl::StrCat("[queue.a]\n", kNeeded, "[queue.a]\n")), HasSubstr("q.toml:5:"));
}

}  // namespace
}  // namespace pelab::queues
