#include "tests/bench/load/host.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <system_error>
#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "core/base/status.h"
#include "core/rpc/channel.h"
#include "tests/bench/load/fake_worker.h"

namespace pelab::load {
namespace {

constexpr absl::Duration kStartTime = absl::Minutes(2);
constexpr absl::Duration kStopTime = absl::Minutes(1);

// The rest of the first line of `path` that begins with `name`.
std::string Field(const std::string& path, const std::string& name) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (absl::StartsWith(line, name)) return line.substr(name.size());
  }
  return "";
}

double Seconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
}

}  // namespace

double CpuSeconds(pid_t pid) {
  std::ifstream file(absl::StrCat("/proc/", pid, "/stat"));
  std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  // Skips the process name, which may contain anything. The state is field 3, utime and stime are
  // fields 14 and 15.
  std::istringstream rest(text.substr(std::min(text.size(), text.rfind(')') + 1)));
  std::string skipped;
  for (int i = 3; i < 14; ++i) rest >> skipped;
  double user = 0;
  double system = 0;
  rest >> user >> system;
  return (user + system) / static_cast<double>(sysconf(_SC_CLK_TCK));
}

double OwnCpuSeconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return Seconds(usage.ru_utime) + Seconds(usage.ru_stime);
}

double PeakMiB(pid_t pid) {
  return std::atof(Field(absl::StrCat("/proc/", pid, "/status"), "VmHWM:").c_str()) / 1024;
}

ProcessSize SizeOf(pid_t pid) {
  const std::string folder = absl::StrCat("/proc/", pid);
  ProcessSize size;
  size.resident_mib = std::atof(Field(folder + "/status", "VmRSS:").c_str()) / 1024;
  size.threads = std::atoi(Field(folder + "/status", "Threads:").c_str());
  std::error_code ended;
  for (std::filesystem::directory_iterator file(folder + "/fd", ended), end; file != end;
       file.increment(ended)) {
    ++size.descriptors;
  }
  return size;
}

std::string DescribeHost() {
  std::string model = Field("/proc/cpuinfo", "model name");
  model.erase(0, model.find_first_not_of("\t: "));
  double load = 0;
  std::ifstream("/proc/loadavg") >> load;
  return absl::StrCat(model, ", ", std::thread::hardware_concurrency(), " cores, load ", load);
}

Latencies ProbeFsync(const std::string& directory, int times) {
  Latencies latencies;
  const std::string path = directory + "/fsync.probe";
  const int fd = open(path.c_str(), O_CREAT | O_WRONLY | O_TRUNC | O_CLOEXEC, 0600);
  if (fd < 0) return latencies;
  const std::array<char, 4096> block{};
  for (int i = 0; i < times; ++i) {
    const std::int64_t began = Now();
    if (write(fd, block.data(), block.size()) < 0 || fdatasync(fd) != 0) break;
    latencies.Add(static_cast<double>(Now() - began) / 1e6);
  }
  close(fd);
  unlink(path.c_str());
  return latencies;
}

bool AllowOpenFiles(std::uint64_t files) {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return false;
  if (limit.rlim_cur >= files) return true;
  limit.rlim_cur = files;
  limit.rlim_max = std::max<rlim_t>(limit.rlim_max, files);
  return setrlimit(RLIMIT_NOFILE, &limit) == 0;
}

absl::StatusOr<ServerProcess> ServerProcess::Start(const std::string& program,
                                                   const std::string& directory,
                                                   const std::vector<std::string>& flags) {
  const std::string database = directory + "/pelab.db";
  const std::string address = absl::StrCat("unix:", directory, "/s");
  UniqueFd log(open((directory + "/server.log").c_str(), O_CREAT | O_WRONLY | O_APPEND, 0600));
  PELAB_ASSIGN_OR_RETURN(Pipe lifeline, MakePipe());
  SpawnOptions spawn{.argv = {program, "--db", database, "--listen", address, "--parent-fd", "3"}};
  spawn.argv.insert(spawn.argv.end(), flags.begin(), flags.end());
  spawn.fds = {{log.get(), 1}, {log.get(), 2}, {lifeline.read.get(), 3}};
  PELAB_ASSIGN_OR_RETURN(Process process, Process::Spawn(spawn));
  PELAB_ASSIGN_OR_RETURN(const rpc::Address parsed, rpc::ParseAddress(address));
  PELAB_RETURN_IF_ERROR(rpc::Connect(parsed, {}, kStartTime, rpc::OnRefusal::kWait).status());
  return ServerProcess(std::move(process), std::move(lifeline.write), address, database);
}

absl::Status ServerProcess::Stop() {
  const ExitStatus status = process_.Stop(kStopTime);
  if (status.ok()) return absl::OkStatus();
  return absl::InternalError(absl::StrCat("pelab-server ", status.ToString()));
}

void ServerProcess::Kill() {
  process_.Signal(SIGKILL);
  process_.Wait();
}

}  // namespace pelab::load
