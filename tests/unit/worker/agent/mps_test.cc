// Starting and ending a control daemon. This tests processes and directories, not a GPU.
#include "worker/agent/mps.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/base/process.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"
#include "tests/support/variable.h"

namespace pelab::agent {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

class MpsTest : public testing::Test {
 protected:
  ~MpsTest() override {
    if (const int pid = Pid(); pid > 0) kill(pid, SIGKILL);
  }
  int Pid() {
    int pid = 0;
    std::ifstream(dir_ / "mps/pipe/pid") >> pid;
    return pid;
  }
  static bool Alive(int pid) {
    std::ifstream stat(absl::StrCat("/proc/", pid, "/stat"));
    std::string text;
    return std::getline(stat, text) && text.find(") Z") == std::string::npos;
  }
  static bool Ends(int pid) {
    const absl::Time deadline = absl::Now() + absl::Seconds(10);
    while (Alive(pid) && absl::Now() < deadline) absl::SleepFor(absl::Milliseconds(5));
    return !Alive(pid);
  }
  // Leaves a daemon in the directory that nobody will end.
  void LeaveOne() {
    std::filesystem::create_directories(dir_ / "mps/pipe");
    std::filesystem::create_directories(dir_ / "mps/log");
    SpawnOptions options;
    options.argv = {absl::StrCat(PELAB_SOURCE_DIR, "/tests/support/mps_control_double.sh"), "-d"};
    options.env = {{"CUDA_MPS_PIPE_DIRECTORY", dir_ / "mps/pipe"},
                   {"CUDA_MPS_LOG_DIRECTORY", dir_ / "mps/log"}};
    auto started = Process::Spawn(options);
    ASSERT_THAT(started, IsOk());
    ASSERT_TRUE(started->Wait().ok());
  }
  absl::StatusOr<std::unique_ptr<Mps>> Start(absl::Duration patience = absl::Seconds(10)) {
    return Mps::Start(absl::StrCat(PELAB_SOURCE_DIR, "/tests/support/mps_control_double.sh"),
                      dir_ / "mps", patience);
  }

  TempDir dir_;
  Variable none_{"PELAB_MPS_DOUBLE", std::nullopt};
};

TEST_F(MpsTest, StartsOneAndEndsIt) {
  const Variable visible("CUDA_VISIBLE_DEVICES", "GPU-1,GPU-2");
  auto mps = Start();
  ASSERT_THAT(mps, IsOk());
  EXPECT_EQ((*mps)->Variable(),
            (std::pair<std::string, std::string>("CUDA_MPS_PIPE_DIRECTORY", dir_ / "mps/pipe")));
  const int pid = Pid();
  EXPECT_TRUE(Alive(pid));
  std::string line;
  std::ifstream log(dir_ / "mps/log/control.log");
  std::getline(log, line);
  EXPECT_EQ(line, "visible [GPU-1,GPU-2]") << "the devices that this process may use";
  struct stat found = {};
  ASSERT_EQ(stat((dir_ / "mps").c_str(), &found), 0);
  EXPECT_EQ(found.st_mode & 0777, 0700u);
  mps->reset();
  EXPECT_TRUE(Ends(pid));
  EXPECT_FALSE(std::filesystem::exists(dir_ / "mps"));
}

TEST_F(MpsTest, EndsWhatAKilledWorkerHasLeft) {
  LeaveOne();
  const int before = Pid();
  ASSERT_TRUE(Alive(before));
  {
    const auto mps = Start();
    ASSERT_THAT(mps, IsOk());
    EXPECT_TRUE(Ends(before));
    EXPECT_NE(Pid(), before);
    EXPECT_TRUE(Alive(Pid()));
  }
  // After a power loss there is a socket without a daemon.
  LeaveOne();
  kill(Pid(), SIGKILL);
  EXPECT_TRUE(Ends(Pid()));
  EXPECT_THAT(Start(), IsOk());
}

TEST_F(MpsTest, SaysWhyThereIsNone) {
  {
    const Variable mode("PELAB_MPS_DOUBLE", "fails");
    EXPECT_THAT(Start(), StatusIs(absl::StatusCode::kUnavailable, HasSubstr("status 1")));
  }
  {
    const Variable mode("PELAB_MPS_DOUBLE", "dies");
    EXPECT_THAT(Start(), StatusIs(absl::StatusCode::kUnavailable, HasSubstr("get_server_list")));
  }
  {
    const Variable mode("PELAB_MPS_DOUBLE", "deaf");
    EXPECT_THAT(Start(absl::Milliseconds(300)), StatusIs(absl::StatusCode::kDeadlineExceeded,
                                                         HasSubstr("did not end within 300ms")));
  }
  EXPECT_THAT(Mps::Start("/nowhere/nvidia-cuda-mps-control", dir_ / "other"),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("nvidia-cuda-mps-control")));
}

TEST_F(MpsTest, TakesNoDirectoryOfSomebodyElse) {
  std::filesystem::create_directories(dir_ / "elsewhere");
  std::filesystem::create_symlink(dir_ / "elsewhere", dir_ / "mps");
  EXPECT_THAT(Start(), StatusIs(absl::StatusCode::kFailedPrecondition,
                                HasSubstr("is not a directory of this user")));
}

TEST_F(MpsTest, ADaemonOfTheHostIsUsedAsItIs) {
  std::filesystem::create_directories(dir_ / "bin");
  std::filesystem::copy_file(absl::StrCat(PELAB_SOURCE_DIR, "/tests/support/mps_control_double.sh"),
                             dir_ / "bin/nvidia-cuda-mps-control");
  const Variable path("PATH", absl::StrCat(dir_ / "bin", ":", getenv("PATH")));
  const Variable named("CUDA_MPS_PIPE_DIRECTORY", std::nullopt);
  const std::string host = dir_ / "nvidia-mps";
  EXPECT_EQ(MpsProgram(host), dir_ / "bin/nvidia-cuda-mps-control");
  {
    const Variable elsewhere("CUDA_MPS_PIPE_DIRECTORY", "/run/mps");
    EXPECT_EQ(MpsProgram(host), std::nullopt);
  }
  std::filesystem::create_directories(host);
  EXPECT_NE(MpsProgram(host), std::nullopt);
  std::ofstream(host + "/control").put('x');
  EXPECT_EQ(MpsProgram(host), std::nullopt);
  const Variable without("PATH", dir_ / "nothing");
  EXPECT_EQ(MpsProgram(dir_ / "another"), std::nullopt);
}

TEST(MpsDirectory, LeavesRoomForTheNamesOfSockets) {
  const std::string id = "3e1f8c9a-77aa-4c11-9d9b-0123456789ab";
  EXPECT_EQ(MpsDirectory("/scratch/pelab", id), "/scratch/pelab/mps");
  const std::string deep = absl::StrCat("/", std::string(80, 'd'));
  {
    const Variable temporary("TMPDIR", "/scratch/tmp");
    EXPECT_EQ(MpsDirectory(deep, id), "/scratch/tmp/pelab-mps-3e1f8c9a-77aa");
  }
  {
    const Variable temporary("TMPDIR", deep);
    EXPECT_EQ(MpsDirectory(deep, id), "/tmp/pelab-mps-3e1f8c9a-77aa");
  }
  const Variable temporary("TMPDIR", std::nullopt);
  EXPECT_THAT(MpsDirectory(deep, id), StartsWith("/tmp/pelab-mps-"));
}

}  // namespace
}  // namespace pelab::agent
