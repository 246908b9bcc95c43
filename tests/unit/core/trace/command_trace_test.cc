#include "core/trace/command_trace.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <nlohmann/json.hpp>

#include "core/base/file.h"
#include "core/base/temporary_folder.h"

namespace pelab::trace {
namespace {

constexpr char kOuter[] = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

TEST(CommandTrace, IsBelowTheTraceOfTheEnvironment) {
  setenv(kTraceparentVariable, kOuter, 1);
  const CommandTrace command;
  EXPECT_EQ(command.context().trace_id, "0af7651916cd43dd8448eb211c80319c");
  EXPECT_NE(command.context().span_id, "b7ad6b7169203331");
  unsetenv(kTraceparentVariable);
}

TEST(CommandTrace, BeginsATraceIfThereIsNoneOrNoValidOne) {
  unsetenv(kTraceparentVariable);
  EXPECT_TRUE(ParseTraceparent(Traceparent(CommandTrace().context())));
  setenv(kTraceparentVariable, "nonsense", 1);
  EXPECT_TRUE(ParseTraceparent(Traceparent(CommandTrace().context())));
  unsetenv(kTraceparentVariable);
}

TEST(CommandTrace, IsTheCurrentOneWhileItLives) {
  EXPECT_EQ(CommandTrace::Current(), nullptr);
  {
    const CommandTrace command;
    EXPECT_EQ(CommandTrace::Current(), &command);
  }
  EXPECT_EQ(CommandTrace::Current(), nullptr);
}

TEST(CommandTrace, RecordsItsSpanAtItsEnd) {
  setenv(kTraceparentVariable, kOuter, 1);
  const auto folder = *TemporaryFolder::Make("command");
  const std::string path = folder.path() + "/spans";
  std::string span_id;
  {
    CommandTrace command;
    ASSERT_TRUE(command.RecordTo(path, "pelab").ok());
    span_id = command.context().span_id;
    EXPECT_EQ(command.Finish("pelab submit", "no coordinator"), 0u);
  }
  unsetenv(kTraceparentVariable);
  const auto json = nlohmann::json::parse(ReadFile(path, 1 << 20).value_or(""), nullptr, false);
  const auto& span = json["resourceSpans"][0]["scopeSpans"][0]["spans"][0];
  EXPECT_EQ(span["name"], "pelab submit");
  EXPECT_EQ(span["spanId"], span_id);
  EXPECT_EQ(span["parentSpanId"], "b7ad6b7169203331");
  EXPECT_EQ(span["status"]["message"], "no coordinator");
}

}  // namespace
}  // namespace pelab::trace
