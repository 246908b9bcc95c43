#include "worker/agent/mps.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "core/base/file.h"
#include "core/base/log.h"
#include "core/base/process.h"
#include "core/base/status.h"
#include "core/rpc/token_variable.h"

namespace pelab::agent {
namespace {

constexpr char kPipeVariable[] = "CUDA_MPS_PIPE_DIRECTORY";
constexpr char kLogVariable[] = "CUDA_MPS_LOG_DIRECTORY";
// A socket's path has at most 107 bytes. The names that MPS adds below its directory fit in the
// remaining 32.
constexpr std::size_t kMaxDirectory = 75;
// A worker that ends has little time. If its daemon stays behind, the next worker ends it.
constexpr absl::Duration kQuitPatience = absl::Seconds(2);

// Makes a directory that only this user can write to. Otherwise another user could put sockets
// there and pass for the daemon.
absl::Status MakePrivate(const std::string& directory) {
  if (mkdir(directory.c_str(), 0700) != 0 && errno != EEXIST) {
    return ErrnoStatus(errno, absl::StrCat("cannot make ", directory));
  }
  struct stat found = {};
  if (lstat(directory.c_str(), &found) != 0) {
    return ErrnoStatus(errno, absl::StrCat("cannot look at ", directory));
  }
  if (S_ISDIR(found.st_mode) && found.st_uid == geteuid()) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(directory, " is not a directory of this user"));
}

}  // namespace

std::optional<std::string> MpsProgram(const std::string& host_directory) {
  const char* named = std::getenv(kPipeVariable);
  if (named != nullptr && *named != '\0') return std::nullopt;
  std::error_code error;
  if (std::filesystem::exists(absl::StrCat(host_directory, "/control"), error)) return std::nullopt;
  absl::StatusOr<std::string> program = FindProgram("nvidia-cuda-mps-control");
  if (!program.ok()) return std::nullopt;
  return *std::move(program);
}

std::string MpsDirectory(const std::string& work_dir, const std::string& worker_id) {
  std::string directory = absl::StrCat(work_dir, "/mps");
  if (directory.size() <= kMaxDirectory) return directory;
  const char* temporary = std::getenv("TMPDIR");
  const bool usable = temporary != nullptr && *temporary == '/';
  directory = absl::StrCat(usable ? temporary : "/tmp", "/pelab-mps-", worker_id.substr(0, 13));
  if (directory.size() <= kMaxDirectory) return directory;
  return absl::StrCat("/tmp/pelab-mps-", worker_id.substr(0, 13));
}

absl::StatusOr<std::unique_ptr<Mps>> Mps::Start(std::string program, std::string directory,
                                                absl::Duration patience) {
  std::unique_ptr<Mps> mps(new Mps(std::move(program), std::move(directory)));
  PELAB_RETURN_IF_ERROR(mps->Begin(patience));
  mps->runs_ = true;
  return mps;
}

absl::Status Mps::Begin(absl::Duration patience) {
  PELAB_RETURN_IF_ERROR(MakePrivate(directory_));
  if (access(absl::StrCat(PipeDirectory(), "/control").c_str(), F_OK) == 0) {
    Say("quit", kQuitPatience).IgnoreError();
  }
  PELAB_RETURN_IF_ERROR(RemoveAll(PipeDirectory()));
  PELAB_RETURN_IF_ERROR(CreateDirectories(PipeDirectory()));
  PELAB_RETURN_IF_ERROR(CreateDirectories(absl::StrCat(directory_, "/log")));
  PELAB_RETURN_IF_ERROR(Run("-d", /*input=*/-1, patience));
  // The program has reported that it started. Its answer shows whether it still runs.
  return Say("get_server_list", patience);
}

Mps::~Mps() {
  if (!runs_) return;
  const absl::Status status = Say("quit", kQuitPatience);
  if (!status.ok()) spdlog::warn("MPS does not end: {}", std::string{status.message()});
  RemoveAll(directory_).IgnoreError();
}

std::pair<std::string, std::string> Mps::Variable() const {
  return {kPipeVariable, PipeDirectory()};
}

absl::Status Mps::Say(const std::string& command, absl::Duration patience) const {
  PELAB_ASSIGN_OR_RETURN(Pipe pipe, MakePipe());
  // The command fits into the pipe's buffer, and the read end is open here, so this does not block.
  PELAB_RETURN_IF_ERROR(WriteAll(pipe.write.get(), absl::StrCat(command, "\n"), "a pipe"));
  pipe.write.Reset();
  return Annotate(Run(nullptr, pipe.read.get(), patience), absl::StrCat("\"", command, "\""));
}

absl::Status Mps::Run(const char* flag, int input, absl::Duration patience) const {
  const UniqueFd nowhere(open("/dev/null", O_WRONLY | O_CLOEXEC));
  if (!nowhere) return ErrnoStatus(errno, "cannot open /dev/null");
  SpawnOptions options;
  options.argv = {program_};
  if (flag != nullptr) options.argv.emplace_back(flag);
  options.env = {{kPipeVariable, PipeDirectory()}, {kLogVariable, directory_ + "/log"}};
  options.unset_env = {rpc::kTokenVariable};
  options.fds = {{nowhere.get(), 1}};
  if (input >= 0) options.fds.emplace_back(input, 0);
  PELAB_ASSIGN_OR_RETURN(Process process, Process::Spawn(options));
  const std::optional<ExitStatus> status = process.WaitFor(patience);
  if (!status.has_value()) {
    return absl::DeadlineExceededError(
        absl::StrCat(program_, " did not end within ", absl::FormatDuration(patience)));
  }
  if (status->ok()) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat(program_, " ", status->ToString()));
}

}  // namespace pelab::agent
