#include "server/sched/capabilities.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace pelab::sched {
namespace {

using testing::HasSubstr;

const Slot kCpu{0, "cpu", "cpu", 1000};

Capabilities Parse(const std::string& json) { return *Capabilities::Parse(json); }

TEST(Capabilities, VersionsMustMatch) {
  const Capabilities has =
      Parse(R"({"pes":[{"name":"rope","version":1}],"tasks":[{"name":"distance","version":2}]})");
  store::Requirement job{
      .pe = "rope", .pe_version = 1, .task = "distance", .task_version = 2, .device_kind = "any"};
  EXPECT_EQ(has.WhyNot(kCpu, job), "");
  job.pe_version = 2;
  EXPECT_THAT(has.WhyNot(kCpu, job), HasSubstr("pe rope in version 1, not 2"));
  job.pe = "mla";
  EXPECT_THAT(has.WhyNot(kCpu, job), HasSubstr("no pe mla"));
  job = {.pe = "rope", .pe_version = 1, .task = "counting", .device_kind = "any"};
  EXPECT_THAT(has.WhyNot(kCpu, job), HasSubstr("no task counting"));
}

// A worker with --own-encodings off does not name "own".
TEST(Capabilities, EncodingsFromFilesAreAPeLikeOthers) {
  const store::Requirement job{.pe = "own", .pe_version = 1, .device_kind = "any"};
  EXPECT_EQ(Parse(R"({"pes":[{"name":"own","version":1}]})").WhyNot(kCpu, job), "");
  EXPECT_EQ(Parse(R"({"pes":[{"name":"rope","version":1}]})").WhyNot(kCpu, job),
            "its trainer has no pe own");
}

// The trainer may be newer than the daemon, which would not fetch the file for it.
TEST(Capabilities, ADaemonThatFetchesNoFilesGetsNoJobThatNeedsOne) {
  Capabilities has = Parse("{}");
  has.set_fetches_files(false);
  EXPECT_EQ(has.WhyNot(kCpu, {.pe = "rope", .task = "distance", .device_kind = "any"}), "");
  for (const store::Requirement& job :
       {store::Requirement{.pe = "own", .task = "distance", .device_kind = "any"},
        store::Requirement{.pe = "rope", .task = "own:induction", .device_kind = "any"}}) {
    EXPECT_THAT(has.WhyNot(kCpu, job), HasSubstr("upgrade its pelab-worker"));
    has.set_fetches_files(true);
    EXPECT_EQ(has.WhyNot(kCpu, job), "");
    has.set_fetches_files(false);
  }
}

TEST(Capabilities, AnalysesMustBeThereInTheirVersion) {
  const Capabilities has =
      Parse(R"({"analyses":[{"name":"head_ablation","version":2},{"name":"layer_ablation",)"
            R"("version":1}]})");
  store::Requirement job{.device_kind = "any", .analyses = {{"head_ablation", 2}}};
  EXPECT_EQ(has.WhyNot(kCpu, job), "");
  job.analyses = {{"head_ablation", 1}};
  EXPECT_THAT(has.WhyNot(kCpu, job), HasSubstr("analysis head_ablation in version 2, not 1"));
  job.analyses = {{"head_ablation", 2}, {"probe", 1}};
  EXPECT_THAT(has.WhyNot(kCpu, job), HasSubstr("no analysis probe"));
  EXPECT_EQ(Parse("{}").WhyNot(kCpu, job), "") << "what says nothing restricts nothing";
}

TEST(Capabilities, AVersionThatIsNoIntegerIsNoVersion) {
  const store::Requirement job{.pe = "rope", .pe_version = 1, .device_kind = "any"};
  for (const char* version : {"4294967297", "1.0", "\"1\"", "18446744073709551617"}) {
    EXPECT_THAT(Parse(std::string(R"({"pes":[{"name":"rope","version":)") + version + "}]}")
                    .WhyNot(kCpu, job),
                HasSubstr("pe rope in version 0, not 1"))
        << version;
  }
}

TEST(Capabilities, DevicesAndMemoryMustFit) {
  const Capabilities any = Parse("{}");
  EXPECT_EQ(any.WhyNot(kCpu, {.device_kind = "cpu", .memory_bytes = 1000}), "");
  EXPECT_THAT(any.WhyNot(kCpu, {.device_kind = "gpu"}), HasSubstr("is a cpu, not a gpu"));
  EXPECT_THAT(any.WhyNot(kCpu, {.device_kind = "any", .memory_bytes = 1001}),
              HasSubstr("1000 bytes of memory, not 1001 bytes"));
  const Slot unknown_memory{0, "cuda:0", "gpu", 0};
  EXPECT_EQ(any.WhyNot(unknown_memory, {.device_kind = "gpu", .memory_bytes = 1001}), "");
}

TEST(Capabilities, WhatIsNotJsonIsRefused) {
  EXPECT_FALSE(Capabilities::Parse("[]").ok());
  EXPECT_FALSE(Capabilities::Parse("{").ok());
  const int deep = 500'000;
  const std::string nested = std::string(deep, '[') + std::string(deep, ']');
  EXPECT_FALSE(Capabilities::Parse("{\"pes\":" + nested + "}").ok());
  EXPECT_TRUE(Capabilities::Parse("").ok());
}

}  // namespace
}  // namespace pelab::sched
