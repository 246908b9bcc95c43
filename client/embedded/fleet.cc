#include "client/embedded/fleet.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <utility>
#include <vector>

#include "absl/strings/str_split.h"
#include "client/limits.h"
#include "core/base/file.h"
#include "core/base/status.h"
#include "core/base/strings.h"
#include "core/trace/command_trace.h"

namespace pelab::client {
namespace {

constexpr int kParentFd = 3;  // its descriptor number in the children

std::string Tail(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  file.seekg(0, std::ios::end);
  const auto size = static_cast<std::size_t>(std::max<std::streamoff>(0, file.tellg()));
  file.seekg(static_cast<std::streamoff>(size - std::min(size, limits::kQuotedLogBytes)));
  const std::string text((std::istreambuf_iterator<char>(file)), {});
  std::vector<std::string> lines = absl::StrSplit(text, '\n', absl::SkipEmpty());
  if (lines.size() > limits::kQuotedLogLines)
    lines.erase(lines.begin(), lines.end() - limits::kQuotedLogLines);
  return lines.empty() ? "nothing" : Join(lines, " | ");
}

// Makes a directory with a path short enough for a socket: in $TMPDIR if that is short, else in
// /tmp.
absl::StatusOr<TemporaryFolder> MakeSocketDirectory() {
  const char* tmpdir = getenv("TMPDIR");
  std::string parent = tmpdir != nullptr && *tmpdir == '/' ? tmpdir : "/tmp";
  if (parent.size() > limits::kSocketParentBytes) parent = "/tmp";
  return TemporaryFolder::Make(parent + "/pelab-");  // its mode lets no other user connect
}

absl::Status Ended(const std::string& program, std::optional<Process>& process,
                   const std::string& log) {
  if (!process) return absl::OkStatus();
  const std::optional<ExitStatus> status = process->WaitFor(absl::ZeroDuration());
  if (!status) return absl::OkStatus();
  return absl::InternalError(
      Concat(program, " ", status->ToString(), "; the end of its log ", log, ": ", Tail(log)));
}

}  // namespace

absl::StatusOr<std::unique_ptr<Fleet>> Fleet::StartServer(const FleetOptions& options) {
  std::unique_ptr<Fleet> fleet(new Fleet(options));
  PELAB_ASSIGN_OR_RETURN(fleet->alive_, MakePipe());
  PELAB_ASSIGN_OR_RETURN(fleet->socket_directory_, MakeSocketDirectory());
  fleet->address_ = Concat("unix:", *fleet->socket_directory_ / "s");
  PELAB_ASSIGN_OR_RETURN(
      Process server,
      // Only this user can open the socket, and this user can write the database anyway.
      fleet->Spawn("pelab-server",
                   {"--db", options.database, "--listen", fleet->address_, "--admit-everybody"},
                   options.ServerLog()));
  fleet->server_ = std::move(server);
  return fleet;
}

Fleet::~Fleet() {
  Kill();
  worker_.reset();
  server_.reset();
}

absl::StatusOr<Process> Fleet::Spawn(const std::string& program, std::vector<std::string> arguments,
                                     const std::string& log) {
  PELAB_ASSIGN_OR_RETURN(const std::string path, FindProgram(program));
  PELAB_ASSIGN_OR_RETURN(const UniqueFd log_fd, OpenForAppend(log));
  SpawnOptions spawn;
  spawn.argv = {path};
  spawn.argv.insert(spawn.argv.end(), arguments.begin(), arguments.end());
  const trace::CommandTrace* const command = trace::CommandTrace::Current();
  if (command != nullptr && !command->file().empty()) {
    spawn.argv.insert(spawn.argv.end(), {"--trace-file", command->file()});
  }
  spawn.argv.insert(spawn.argv.end(), {"--parent-fd", Concat(kParentFd)});
  spawn.fds = {{log_fd.get(), 1}, {log_fd.get(), 2}, {alive_.read.get(), kParentFd}};
  return Process::Spawn(spawn);
}

absl::Status Fleet::CheckServer() { return Ended("pelab-server", server_, options_.ServerLog()); }

absl::Status Fleet::CheckWorker() { return Ended("pelab-worker", worker_, options_.WorkerLog()); }

absl::Status Fleet::StartWorker() {
  // Its checkpoints already lie next to the database, so uploading them would be pointless.
  std::vector<std::string> arguments = {
      "--server", address_, "--workdir", options_.WorkDir(), "--checkpoint-upload", "0"};
  const auto pass_on = [&](const char* flag, std::optional<int> value) {
    if (value) arguments.insert(arguments.end(), {flag, Concat(*value)});
  };
  pass_on("--cpu-slots", options_.cpu_slots);
  pass_on("--slots-per-device", options_.slots_per_device);
  pass_on("--threads-per-slot", options_.threads_per_slot);
  PELAB_ASSIGN_OR_RETURN(Process worker,
                         Spawn("pelab-worker", std::move(arguments), options_.WorkerLog()));
  const std::lock_guard lock(mutex_);
  worker_ = std::move(worker);
  return absl::OkStatus();
}

void Fleet::Stop(absl::Duration worker_grace, absl::Duration server_grace) {
  if (worker_) worker_->Stop(worker_grace);
  if (server_) server_->Stop(server_grace);
}

void Fleet::Kill() {
  const std::lock_guard lock(mutex_);
  if (worker_) worker_->Signal(SIGKILL);
  if (server_) server_->Signal(SIGKILL);
}

}  // namespace pelab::client
