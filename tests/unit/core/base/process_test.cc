#include "core/base/process.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <cstdlib>
#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/base/file.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace pelab {
namespace {

using ::testing::HasSubstr;

// Runs a shell command with its standard output in a pipe and returns what it printed.
std::string Output(const std::string& command, SpawnOptions options = {}) {
  Pipe pipe = *MakePipe();
  options.argv = {"/bin/sh", "-c", command};
  options.fds.emplace_back(pipe.write.get(), 1);
  auto process = Process::Spawn(options);
  EXPECT_THAT(process, IsOk());
  pipe.write.Reset();
  std::string text;
  char buffer[4096];
  ssize_t got = 0;
  while ((got = read(pipe.read.get(), buffer, sizeof buffer)) > 0) text.append(buffer, got);
  EXPECT_TRUE(process->Wait().ok());
  return text;
}

bool Alive(int pid) {
  std::ifstream stat(absl::StrCat("/proc/", pid, "/stat"));
  std::string text;
  return std::getline(stat, text) && text.find(") Z") == std::string::npos;
}

TEST(Process, TellsHowItEnded) {
  SpawnOptions options;
  options.argv = {"/bin/sh", "-c", "exit 75"};
  ExitStatus status = Process::Spawn(options)->Wait();
  EXPECT_FALSE(status.signaled);
  EXPECT_EQ(status.code, 75);
  EXPECT_EQ(status.ToString(), "exited with status 75");
  options.argv[2] = "kill -SEGV $$";
  status = Process::Spawn(options)->Wait();
  EXPECT_TRUE(status.signaled);
  EXPECT_EQ(status.ToString(), "ended by signal 11 (segmentation fault)");
}

TEST(Process, NamesAProgramThatIsNotThere) {
  SpawnOptions options;
  options.argv = {"/nowhere/program"};
  EXPECT_THAT(Process::Spawn(options),
              StatusIs(absl::StatusCode::kNotFound,
                       "cannot start /nowhere/program: no such file or directory"));
  options.argv = {"/etc/passwd"};
  EXPECT_THAT(Process::Spawn(options),
              StatusIs(absl::StatusCode::kPermissionDenied, HasSubstr("/etc/passwd")));
  options.argv = {};
  EXPECT_FALSE(Process::Spawn(options).ok());
}

TEST(Process, PassesEnvironmentDirectoryAndNothingElse) {
  TempDir dir;
  setenv("PELAB_TEST_GONE", "1", 1);
  setenv("PELAB_TEST_KEPT", "kept", 1);
  SpawnOptions options;
  options.env = {{"PELAB_TEST_NEW", "a b=c"}};
  options.unset_env = {"PELAB_TEST_GONE"};
  options.working_dir = dir.path();
  EXPECT_EQ(
      Output("echo \"$PELAB_TEST_NEW|${PELAB_TEST_GONE-unset}|$PELAB_TEST_KEPT\"; pwd", options),
      "a b=c|unset|kept\n" + dir.path() + "\n");
}

TEST(Process, PassesOnlyTheDescriptorsThatAreNamed) {
  const UniqueFd leak(
      open("/dev/null", O_RDONLY));  // not close-on-exec, as another library might leave it
  Pipe parent = *MakePipe();
  SpawnOptions options;
  options.fds = {{parent.read.get(), 5}};
  // The shell itself may hold descriptors from 10 on; the program that it execs does not.
  EXPECT_EQ(Output("exec ls /proc/self/fd", options),
            "0\n1\n2\n3\n5\n");  // 3: the directory that ls reads
  EXPECT_EQ(Output("readlink /proc/self/fd/0", {}), "/dev/null\n");
}

TEST(Process, MapsCrossedDescriptors) {
  TempDir dir;
  std::ofstream(dir / "a") << "A";
  std::ofstream(dir / "b") << "B";
  // Each file should get the number that the other one has here, if possible.
  UniqueFd a(open((dir / "a").c_str(), O_RDONLY | O_CLOEXEC));
  UniqueFd b(open((dir / "b").c_str(), O_RDONLY | O_CLOEXEC));
  const int low_a = a.get() <= 9 ? a.get() : 4;
  const int low_b = b.get() <= 9 ? b.get() : 6;
  SpawnOptions options;
  options.fds = {{a.get(), low_b}, {b.get(), low_a}};
  EXPECT_EQ(Output(absl::StrCat("cat <&", low_b, "; cat <&", low_a), options), "AB");
  options.fds = {{a.get(), 4}, {b.get(), 4}};
  options.argv = {"/bin/true"};
  EXPECT_THAT(Process::Spawn(options),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("each once")));
  options.fds = {{a.get(), 10}};
  EXPECT_FALSE(Process::Spawn(options).ok());
}

TEST(Process, StartsWithDefaultSignals) {
  for (const int ignored : {SIGPIPE, SIGXFSZ, SIGQUIT}) signal(ignored, SIG_IGN);
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  // Bit n-1 is signal n. This project does not use signals from 32 on (the C library reserves two
  // of them).
  const auto standard = [](const std::string& name) {
    const std::string hex = Output("sed -n 's/" + name + ":\\t//p' /proc/self/status");
    return std::stoull(hex, nullptr, 16) & 0x7FFFFFFF;
  };
  EXPECT_EQ(standard("SigBlk"), 0u);
  EXPECT_EQ(standard("SigIgn"), 0u);
  pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
}

TEST(Process, WaitsNoLongerThanItIsTold) {
  SpawnOptions options;
  options.argv = {"/bin/sleep", "60"};
  auto process = Process::Spawn(options);
  ASSERT_THAT(process, IsOk());
  const absl::Time begin = absl::Now();
  EXPECT_EQ(process->WaitFor(absl::ZeroDuration()).has_value(), false);
  EXPECT_EQ(process->WaitFor(absl::Milliseconds(30)).has_value(), false);
  EXPECT_GE(absl::Now() - begin, absl::Milliseconds(30));
  process->Signal(SIGKILL);
  EXPECT_EQ(process->Wait().ToString(), "ended by signal 9 (killed)");
  EXPECT_EQ(process->Wait().code, 9);  // a second Wait gives the same
}

TEST(Process, StopGoesFromGentleToForce) {
  SpawnOptions options;
  options.argv = {"/bin/sh", "-c", "trap 'exit 7' TERM; while :; do sleep 0.02; done"};
  auto gentle = Process::Spawn(options);
  ASSERT_THAT(gentle, IsOk());
  // Give the shell time to set its trap; before that the signal would end it.
  absl::SleepFor(absl::Milliseconds(100));
  EXPECT_EQ(gentle->Stop(absl::Seconds(10)).code, 7);
  options.argv[2] = "trap '' TERM; while :; do sleep 0.02; done";
  auto stubborn = Process::Spawn(options);
  ASSERT_THAT(stubborn, IsOk());
  absl::SleepFor(absl::Milliseconds(100));
  EXPECT_EQ(stubborn->Stop(absl::Milliseconds(100)).code, SIGKILL);
}

TEST(Process, TakesItsWholeGroupAlong) {
  TempDir dir;
  const std::string file = dir / "pid";
  SpawnOptions options;
  options.argv = {
      "/bin/sh", "-c",
      "sleep 60 & echo $! > " + file + ".tmp; mv " + file + ".tmp " + file + "; exit 0"};
  auto process = Process::Spawn(options);
  ASSERT_THAT(process, IsOk());
  EXPECT_TRUE(process->Wait().ok());
  int pid = 0;
  std::ifstream(file) >> pid;
  ASSERT_GT(pid, 0);
  const absl::Time deadline = absl::Now() + absl::Seconds(10);
  while (Alive(pid) && absl::Now() < deadline) absl::SleepFor(absl::Milliseconds(5));
  EXPECT_FALSE(Alive(pid));
}

TEST(Process, DestroyingKills) {
  SpawnOptions options;
  options.argv = {"/bin/sleep", "60"};
  int pid = 0;
  {
    auto process = Process::Spawn(options);
    ASSERT_THAT(process, IsOk());
    Process moved = *std::move(process);
    pid = moved.pid();
    EXPECT_TRUE(Alive(pid));
  }
  EXPECT_FALSE(Alive(pid));
}

TEST(FindProgram, LooksBesideItselfAndInPath) {
  const auto self = SelfPath();
  ASSERT_THAT(self, IsOk());
  const std::string name = self->substr(self->rfind('/') + 1);
  EXPECT_EQ(*FindProgram(name), *self);
  EXPECT_THAT(*FindProgram("sh"), testing::EndsWith("/sh"));
  EXPECT_THAT(FindProgram("no-such-program"),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("neither beside this program")));
}

}  // namespace
}  // namespace pelab
