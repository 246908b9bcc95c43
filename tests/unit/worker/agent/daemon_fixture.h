// Runs the real pelab-worker, with a script as trainer, against a coordinator in this process.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/base/file.h"
#include "core/base/hashing.h"
#include "core/base/process.h"
#include "tests/support/fake_fleet.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace pelab::agent {

inline constexpr absl::Duration kPatience = absl::Seconds(60);

class DaemonTest : public testing::Test {
 protected:
  void StartFleet() { fleet_ = std::make_unique<FakeFleet>(dir_ / "s"); }

  SpawnOptions WorkerOptions() {
    SpawnOptions options;
    options.argv = {PELAB_WORKER,
                    "--server",
                    absl::StrCat("unix:", dir_ / "s"),
                    "--workdir",
                    dir_ / "w",
                    "--cpu-slots",
                    "2",
                    "--trainer",
                    absl::StrCat(PELAB_SOURCE_DIR, "/tests/support/trainer_double.sh"),
                    "--log-level",
                    "debug"};
    return options;
  }
  // For a host whose driver reports two GPUs, with a trainer that says that it sees CUDA.
  SpawnOptions GpuWorkerOptions() {
    SpawnOptions options = WorkerOptions();
    const std::string library = dir_ / "lib";
    std::filesystem::create_directories(library);
    std::filesystem::copy_file(PELAB_FAKE_NVML, library + "/libnvidia-ml.so.1",
                               std::filesystem::copy_options::overwrite_existing);
    options.env = {{"LD_LIBRARY_PATH", library}, {"PELAB_DOUBLE_DEVICE", "cuda:0"}};
    options.unset_env = {"CUDA_VISIBLE_DEVICES", "CUDA_MPS_PIPE_DIRECTORY"};
    return options;
  }
  void StartWorker(const SpawnOptions& options) {
    auto worker = Process::Spawn(options);
    ASSERT_THAT(worker, IsOk());
    worker_.emplace(*std::move(worker));
  }
  void StartWorker() { StartWorker(WorkerOptions()); }
  void StartBoth() { StartBothWith(WorkerOptions()); }
  void StartBothWith(const SpawnOptions& options) {
    StartFleet();
    StartWorker(options);
    ASSERT_TRUE(fleet_->Await([&] { return fleet_->connected(); }));
  }
  void AwaitEpochs(std::int64_t attempt_id, std::size_t count) {
    ASSERT_TRUE(
        fleet_->Await([&] { return fleet_->Stored().at(attempt_id).epochs().size() >= count; }));
  }
  // The PID of a job's trainer, which the trainer wrote into its directory.
  int TrainerPid(const v1::Assignment& assignment) {
    int pid = 0;
    std::ifstream(JobDir(assignment) + "/pid") >> pid;
    return pid;
  }
  std::string JobDir(const v1::Assignment& assignment) {
    return absl::StrCat(dir_ / "w", "/jobs/", assignment.key(), ".", assignment.job_id());
  }
  static bool Alive(int pid) {
    std::ifstream stat(absl::StrCat("/proc/", pid, "/stat"));
    std::string text;
    if (!std::getline(stat, text)) return false;
    return text.find(") Z") == std::string::npos;
  }
  bool AttemptsEmpty() { return std::filesystem::is_empty(dir_ / "w/attempts"); }

  TempDir dir_;
  std::unique_ptr<FakeFleet> fleet_;
  std::optional<Process> worker_;
};

}  // namespace pelab::agent
