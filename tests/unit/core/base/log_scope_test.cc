#include "core/base/log_scope.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "core/base/log.h"
#include "core/base/logging.h"

namespace pelab {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;

// Returns the JSON line that `log` writes.
template <typename Log>
std::string LineOf(const Log& log) {
  testing::internal::CaptureStderr();
  EXPECT_TRUE(SetUpLogging("prog", {"json", "info"}).ok());
  log();
  std::string text = testing::internal::GetCapturedStderr();
  EXPECT_TRUE(SetUpLogging("prog", {"text", "info"}).ok());
  return text;
}

TEST(LogScope, LinesHaveTheIdsOfEveryScopeAroundThem) {
  EXPECT_THAT(LineOf([] {
                const LogScope outer({.sweep_id = 7, .worker_id = "w\"1"});
                const LogScope inner({.trace_id = "4bf9", .span_id = "00f0", .attempt_id = 12});
                spdlog::info("lost");
              }),
              EndsWith(R"("message":"lost","trace_id":"4bf9","span_id":"00f0","sweep_id":7,)"
                       R"("attempt_id":12,"worker_id":"w\"1"})"
                       "\n"));
}

TEST(LogScope, TheInnerOneCountsAndEndsWithItsBlock) {
  const LogScope outer({.principal = "ada", .job_id = 1});
  {
    const LogScope inner({.job_id = 2});
    EXPECT_EQ(CurrentLogIds().job_id, 2);
    EXPECT_EQ(CurrentLogIds().principal, "ada");
  }
  EXPECT_EQ(CurrentLogIds().job_id, 1);
}

TEST(LogScope, IsItsThreadsAlone) {
  const LogScope scope({.job_id = 1});
  std::thread other([] { EXPECT_EQ(CurrentLogIds().job_id, 0); });
  other.join();
}

TEST(LogScope, TheProcessHasIdsForEveryThread) {
  SetLogIdsOfProcess({.worker_id = "w1"});
  std::thread other([] {
    EXPECT_EQ(CurrentLogIds().worker_id, "w1");
    const LogScope scope({.worker_id = "w2"});
    EXPECT_EQ(CurrentLogIds().worker_id, "w2");
  });
  other.join();
  SetLogIdsOfProcess({});
  EXPECT_EQ(CurrentLogIds().worker_id, "");
}

TEST(LogScope, ALineOutsideHasNone) {
  EXPECT_THAT(LineOf([] { spdlog::info("plain"); }), Not(HasSubstr("_id")));
}

}  // namespace
}  // namespace pelab
