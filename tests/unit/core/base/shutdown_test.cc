#include "core/base/shutdown.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "core/base/file.h"
#include "core/base/mutex.h"
#include "core/base/process.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace pelab {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr absl::Duration kPatience = absl::Seconds(10);

bool Readable(int fd) {
  pollfd waiting{fd, POLLIN, 0};
  return poll(&waiting, 1, 0) == 1;
}

TEST(ShutdownSignal, SignalsRequestTheEnd) {
  ShutdownSignal shutdown;
  EXPECT_FALSE(shutdown.requested());
  EXPECT_FALSE(Readable(shutdown.fd()));
  EXPECT_FALSE(shutdown.WaitFor(absl::Milliseconds(1)));
  kill(getpid(), SIGTERM);
  EXPECT_TRUE(shutdown.WaitFor(kPatience));
  EXPECT_EQ(shutdown.reason(), "SIGTERM");
  EXPECT_TRUE(Readable(shutdown.fd()));
  shutdown.Wait();
}

TEST(ShutdownSignal, AClosedTerminalRequestsTheEndUnlessThatIsIgnored) {
  {
    ShutdownSignal shutdown;
    kill(getpid(), SIGHUP);
    EXPECT_TRUE(shutdown.WaitFor(kPatience));
    EXPECT_EQ(shutdown.reason(), "SIGHUP");
  }
  sigset_t set;  // as in a program that nohup starts
  sigemptyset(&set);
  sigaddset(&set, SIGHUP);
  pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
  signal(SIGHUP, SIG_IGN);
  ShutdownSignal shutdown;
  kill(getpid(), SIGHUP);
  kill(getpid(), SIGTERM);
  EXPECT_TRUE(shutdown.WaitFor(kPatience));
  EXPECT_EQ(shutdown.reason(), "SIGTERM");
  signal(SIGHUP, SIG_DFL);
}

TEST(ShutdownSignal, WritingTooMuchIsAnErrorAndNoEnd) {
  const ShutdownSignal shutdown;
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit small{.rlim_cur = 10, .rlim_max = before.rlim_max};
  TempDir dir;
  const UniqueFd fd = *OpenForAppend(dir / "file");
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  const absl::Status status = WriteAll(fd.get(), std::string(100, 'x'), "the file");
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  EXPECT_THAT(std::string(status.message()), HasSubstr("cannot write the file: file too large"));
}

TEST(ShutdownSignal, CallsBackEveryTime) {
  ShutdownSignal shutdown;
  Mutex mutex;
  std::vector<std::string> calls;
  shutdown.OnRequest([&](absl::string_view reason, int count) {
    MutexLock lock(&mutex);
    calls.push_back(std::string(reason) + " " + std::to_string(count));
  });
  const auto await = [&](std::size_t count) {
    MutexLock lock(&mutex);
    const auto enough = [&] { return calls.size() >= count; };
    return mutex.AwaitFor(enough, kPatience);
  };
  kill(getpid(), SIGINT);
  ASSERT_TRUE(await(1));
  kill(getpid(), SIGTERM);
  ASSERT_TRUE(await(2));
  shutdown.Request("enough");
  EXPECT_THAT(calls, ElementsAre("SIGINT 1", "SIGTERM 2", "enough 3"));
  EXPECT_EQ(shutdown.reason(), "SIGINT");
  // A handler that is set late is called at once. A replaced handler is no longer called.
  std::vector<int> late;
  shutdown.OnRequest([&](absl::string_view, int count) { late.push_back(count); });
  EXPECT_THAT(late, ElementsAre(3));
  shutdown.OnRequest(nullptr);
  shutdown.Request("again");
  EXPECT_THAT(late, ElementsAre(3));
}

TEST(ShutdownSignal, TheEndOfTheParentIsARequest) {
  ShutdownSignal shutdown;
  Pipe pipe = *MakePipe();
  ASSERT_THAT(shutdown.WatchParent(pipe.read.Release()), IsOk());
  ASSERT_EQ(write(pipe.write.get(), "x", 1), 1);  // a byte has no meaning
  EXPECT_FALSE(shutdown.WaitFor(absl::Milliseconds(20)));
  pipe.write.Reset();
  EXPECT_TRUE(shutdown.WaitFor(kPatience));
  EXPECT_EQ(shutdown.reason(), "parent ended");
}

TEST(ShutdownSignal, RefusesADescriptorThatIsNotOpen) {
  ShutdownSignal shutdown;
  EXPECT_THAT(shutdown.WatchParent(987),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("--parent-fd 987 is not an open file descriptor")));
}

}  // namespace
}  // namespace pelab
