#include "core/base/process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <set>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "core/base/clock.h"
#include "core/base/file.h"
#include "core/base/mutex.h"
#include "core/base/orphans.h"
#include "core/base/status.h"

extern char** environ;

namespace pelab {
namespace {

constexpr int kMaxChildFd = 9;

std::vector<char*> Pointers(std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  pointers.reserve(strings.size() + 1);
  for (std::string& text : strings) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

class FileActions {
 public:
  FileActions() { posix_spawn_file_actions_init(&actions_); }
  ~FileActions() { posix_spawn_file_actions_destroy(&actions_); }
  FileActions(const FileActions&) = delete;
  FileActions& operator=(const FileActions&) = delete;
  posix_spawn_file_actions_t* get() { return &actions_; }

  // First copies the descriptors to numbers that are higher than all numbers in the child, so that
  // no dup2 overwrites a source.
  absl::Status Map(const SpawnOptions& options) {
    bool used[kMaxChildFd + 1] = {};
    for (const auto& [here, there] : options.fds) {
      if (there < 0 || there > kMaxChildFd || used[there]) {
        return absl::InvalidArgumentError(absl::StrCat("cannot map to descriptor ", there,
                                                       " of the child; allowed: 0 to ", kMaxChildFd,
                                                       ", each once"));
      }
      UniqueFd copy(fcntl(here, F_DUPFD_CLOEXEC, kMaxChildFd + 1));
      if (!copy) return ErrnoStatus(errno, absl::StrCat("cannot pass descriptor ", here));
      posix_spawn_file_actions_adddup2(&actions_, copy.get(), there);
      used[there] = true;
      copies_.push_back(std::move(copy));
    }
    if (!used[0]) posix_spawn_file_actions_addopen(&actions_, 0, "/dev/null", O_RDONLY, 0);
    for (int fd = 3; fd <= kMaxChildFd; ++fd) {
      if (!used[fd]) posix_spawn_file_actions_addclose(&actions_, fd);
    }
    posix_spawn_file_actions_addclosefrom_np(&actions_, kMaxChildFd + 1);
    if (!options.working_dir.empty())
      posix_spawn_file_actions_addchdir_np(&actions_, options.working_dir.c_str());
    return absl::OkStatus();
  }

 private:
  posix_spawn_file_actions_t actions_;
  std::vector<UniqueFd> copies_;
};

class SpawnAttributes {
 public:
  SpawnAttributes() {
    posix_spawnattr_init(&attributes_);
    posix_spawnattr_setflags(
        &attributes_, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    posix_spawnattr_setpgroup(&attributes_, 0);
    sigset_t set;
    sigemptyset(&set);
    posix_spawnattr_setsigmask(&attributes_, &set);
    sigfillset(&set);
    posix_spawnattr_setsigdefault(&attributes_, &set);
  }
  ~SpawnAttributes() { posix_spawnattr_destroy(&attributes_); }
  SpawnAttributes(const SpawnAttributes&) = delete;
  SpawnAttributes& operator=(const SpawnAttributes&) = delete;
  const posix_spawnattr_t* get() const { return &attributes_; }

 private:
  posix_spawnattr_t attributes_;
};

// The children that Process objects wait for. Spawn adds a child before anybody can reap it.
struct Children {
  Mutex mutex;
  std::set<pid_t> pids ABSL_GUARDED_BY(mutex);
};
Children& Known() {
  static auto& known = *new Children;
  return known;
}
// Waits until the child `pid` has ended and reaps it. Another process may then get the number.
siginfo_t Reap(pid_t pid) {
  const auto wait = [pid](int options) {
    siginfo_t info{};
    while (waitid(P_PID, static_cast<id_t>(pid), &info, options) < 0 && errno == EINTR) {
    }
    return info;
  };
  wait(WEXITED | WNOWAIT);
  MutexLock lock(&Known().mutex);
  Known().pids.erase(pid);
  return wait(WEXITED);
}

bool IsExecutableFile(const std::string& path) {
  std::error_code error;
  return std::filesystem::is_regular_file(path, error) && access(path.c_str(), X_OK) == 0;
}

ExitStatus FromSiginfo(const siginfo_t& info) {
  return {.signaled = info.si_code != CLD_EXITED, .code = info.si_status};
}

}  // namespace

std::vector<std::string> EnvironmentOf(const SpawnOptions& options) {
  const auto replaced = [&](absl::string_view entry) {
    const absl::string_view name = entry.substr(0, entry.find('='));
    return std::any_of(options.env.begin(), options.env.end(),
                       [&](const auto& e) { return e.first == name; }) ||
           std::find(options.unset_env.begin(), options.unset_env.end(), name) !=
               options.unset_env.end();
  };
  std::vector<std::string> result;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    if (!replaced(*entry)) result.emplace_back(*entry);
  }
  for (const auto& [name, value] : options.env) result.push_back(absl::StrCat(name, "=", value));
  return result;
}

std::string SignalName(int signal) {
  const char* description = sigdescr_np(signal);
  return description != nullptr ? absl::AsciiStrToLower(description) : "unknown signal";
}

std::string ExitStatus::ToString() const {
  if (!signaled) return absl::StrCat("exited with status ", code);
  return absl::StrCat("ended by signal ", code, " (", SignalName(code), ")");
}

absl::StatusOr<Process> Process::Spawn(const SpawnOptions& options) {
  if (options.argv.empty())
    return absl::InvalidArgumentError("cannot start a program without a name");
  FileActions actions;
  PELAB_RETURN_IF_ERROR(actions.Map(options));
  const SpawnAttributes attributes;
  std::vector<std::string> arguments = options.argv;
  std::vector<std::string> environment = EnvironmentOf(options);
  pid_t pid = -1;
  int error = 0;
  {
    MutexLock lock(&Known().mutex);
    error = posix_spawn(&pid, options.argv[0].c_str(), actions.get(), attributes.get(),
                        Pointers(arguments).data(), Pointers(environment).data());
    if (error == 0) Known().pids.insert(pid);
  }
  if (error != 0) return ErrnoStatus(error, absl::StrCat("cannot start ", options.argv[0]));
  return Watch(pid);
}

absl::StatusOr<Process> Process::Adopt(pid_t pid) {
  {
    MutexLock lock(&Known().mutex);
    siginfo_t info{};
    if (waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOWAIT | WNOHANG) != 0) {
      return absl::FailedPreconditionError(
          absl::StrCat("process ", pid, " is no child of this process"));
    }
    Known().pids.insert(pid);
  }
  return Watch(pid);
}

absl::StatusOr<Process> Process::Watch(pid_t pid) {
  UniqueFd pidfd(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));  // close-on-exec by definition
  if (!pidfd) {
    const absl::Status status = ErrnoStatus(errno, "cannot watch a child process (pidfd_open)");
    Process(pid, UniqueFd()).KillAndReap();
    return status;
  }
  return Process(pid, std::move(pidfd));
}

Process::Process(Process&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)),
      pidfd_(std::move(other.pidfd_)),
      status_(other.status_) {}

Process& Process::operator=(Process&& other) noexcept {
  if (this != &other) {
    KillAndReap();
    pid_ = std::exchange(other.pid_, -1);
    pidfd_ = std::move(other.pidfd_);
    status_ = other.status_;
  }
  return *this;
}

Process::~Process() { KillAndReap(); }

void Process::KillAndReap() {
  if (pid_ <= 0 || status_.has_value()) return;
  kill(-pid_, SIGKILL);
  status_ = FromSiginfo(Reap(pid_));
}

void Process::Signal(int signal) const {
  if (pid_ > 0 && !status_.has_value()) kill(-pid_, signal);
}

std::optional<ExitStatus> Process::WaitFor(absl::Duration timeout) {
  if (status_.has_value()) return status_;
  const absl::Duration deadline = SystemClock::Instance().Monotonic() + timeout;
  while (true) {
    const absl::Duration left =
        std::max(deadline - SystemClock::Instance().Monotonic(), absl::ZeroDuration());
    const int milliseconds = static_cast<int>(std::min<std::int64_t>(
        left == absl::InfiniteDuration()
            ? INT_MAX
            : absl::ToInt64Milliseconds(absl::Ceil(left, absl::Milliseconds(1))),
        INT_MAX));
    pollfd waiting{pidfd_.get(), POLLIN, 0};
    const int ready = poll(&waiting, 1, milliseconds);
    if (ready > 0) break;
    if (ready == 0 && milliseconds < INT_MAX) return std::nullopt;
  }
  // The leader stays a zombie until its group is killed, so its number cannot belong to another
  // process yet.
  kill(-pid_, SIGKILL);
  status_ = FromSiginfo(Reap(pid_));
  return status_;
}

ExitStatus Process::Wait() { return *WaitFor(absl::InfiniteDuration()); }

ExitStatus Process::Stop(absl::Duration grace) {
  Signal(SIGTERM);
  if (const auto status = WaitFor(grace)) return *status;
  Signal(SIGKILL);
  return Wait();
}

void ReapOrphan(pid_t pid) {
  MutexLock lock(&Known().mutex);
  if (Known().pids.count(pid) == 0) waitpid(pid, nullptr, WNOHANG);
}

absl::StatusOr<Pipe> MakePipe() {
  int fds[2];
  if (pipe2(fds, O_CLOEXEC) != 0) return ErrnoStatus(errno, "cannot create a pipe");
  return Pipe{UniqueFd(fds[0]), UniqueFd(fds[1])};
}

absl::StatusOr<std::string> SelfPath() {
  std::error_code error;
  const auto path = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error) return ErrnoStatus(error.value(), "cannot read /proc/self/exe");
  return path.string();
}

absl::StatusOr<std::string> FindProgram(const std::string& name) {
  PELAB_ASSIGN_OR_RETURN(const std::string self, SelfPath());
  const std::string sibling = absl::StrCat(DirectoryOf(self), "/", name);
  if (IsExecutableFile(sibling)) return sibling;
  const char* path = std::getenv("PATH");
  for (const absl::string_view directory :
       absl::StrSplit(path == nullptr ? "" : path, ':', absl::SkipEmpty())) {
    const std::string candidate = absl::StrCat(directory, "/", name);
    if (IsExecutableFile(candidate)) return candidate;
  }
  return absl::NotFoundError(absl::StrCat("no program ", name, ": neither beside this program (",
                                          sibling, ") nor in PATH"));
}

}  // namespace pelab
