#include "worker/agent/preloaded_trainer.h"

#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <ctime>
#include <string>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "core/base/clock.h"
#include "core/base/file.h"
#include "core/base/log.h"
#include "core/base/status.h"
#include "core/base/trace_context.h"
#include "core/base/utf8.h"
#include "core/rpc/token_variable.h"
#include "worker/agent/strays.h"

namespace pelab::agent {
namespace {

constexpr int kMostFailures = 3;
constexpr int kControlFd = 3;
constexpr std::size_t kMostDescriptors = 16;
// `ps` shows as much of a trainer's command line.
constexpr std::size_t kRoomForCommandLine = 4000;
constexpr std::size_t kAnswerBytes = 1024;

// A request's strings in a file that has no name (docs/formats.md, "Preloaded trainers").
absl::StatusOr<UniqueFd> WriteRequest(const SpawnOptions& options) {
  std::string text;
  const auto add = [&text](absl::string_view part) {
    absl::StrAppend(&text, part);
    text.push_back('\0');
  };
  add(options.working_dir);
  for (const auto& [here, there] : options.fds) add(absl::StrCat(there));
  add(absl::StrCat(options.argv.size() - 1));
  for (std::size_t i = 1; i < options.argv.size(); ++i) add(options.argv[i]);
  for (const std::string& entry : EnvironmentOf(options)) add(entry);
  UniqueFd file(memfd_create("request", MFD_CLOEXEC));
  if (!file) return ErrnoStatus(errno, "cannot create a file in memory");
  PELAB_RETURN_IF_ERROR(WriteAll(file.get(), text, "a file in memory"));
  return file;
}

// Sends one byte with the descriptors.
absl::Status SendDescriptors(int socket, const std::vector<int>& descriptors) {
  const std::size_t bytes = sizeof(int) * descriptors.size();
  if (descriptors.size() > kMostDescriptors)
    return absl::InvalidArgumentError("a trainer has too many descriptors");
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * kMostDescriptors)] = {};
  char byte = 'f';
  iovec data{&byte, 1};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = CMSG_SPACE(bytes);
  cmsghdr* const part = CMSG_FIRSTHDR(&message);
  part->cmsg_level = SOL_SOCKET;
  part->cmsg_type = SCM_RIGHTS;
  part->cmsg_len = CMSG_LEN(bytes);
  std::memcpy(CMSG_DATA(part), descriptors.data(), bytes);
  ssize_t sent = 0;
  while ((sent = sendmsg(socket, &message, MSG_NOSIGNAL)) < 0 && errno == EINTR) {
  }
  return sent == 1 ? absl::OkStatus() : ErrnoStatus(errno, "cannot ask the preloaded trainer");
}

// Waits at most `patience` for a message. It is empty if the other end is closed.
absl::StatusOr<std::string> ReceiveAnswer(int socket, absl::Duration patience) {
  const absl::Duration until = SystemClock::Instance().Monotonic() + patience;
  while (true) {
    const absl::Duration left = until - SystemClock::Instance().Monotonic();
    if (left <= absl::ZeroDuration()) {
      return absl::DeadlineExceededError(absl::StrCat("the preloaded trainer did not answer for ",
                                                      absl::FormatDuration(patience)));
    }
    pollfd ready{socket, POLLIN, 0};
    if (poll(&ready, 1, static_cast<int>(absl::ToInt64Milliseconds(left)) + 1) <= 0) continue;
    char text[kAnswerBytes];
    const ssize_t got = recv(socket, text, sizeof text, 0);
    if (got >= 0) return std::string(text, static_cast<std::size_t>(got));
    if (errno != EINTR) return ErrnoStatus(errno, "cannot hear the preloaded trainer");
  }
}

}  // namespace

bool PreloadedTrainer::File::operator==(const File& other) const {
  return device == other.device && inode == other.inode && changed.tv_sec == other.changed.tv_sec &&
         changed.tv_nsec == other.changed.tv_nsec;
}

absl::StatusOr<PreloadedTrainer::File> PreloadedTrainer::FileNow() const {
  struct stat info {};
  if (stat(settings_.trainer.c_str(), &info) != 0)
    return ErrnoStatus(errno, absl::StrCat("cannot look at ", settings_.trainer));
  return File{info.st_dev, info.st_ino, info.st_ctim};
}

absl::StatusOr<Process> PreloadedTrainer::Start(const SpawnOptions& options) {
  absl::StatusOr<Process> forked = Fork(options);
  return forked.ok() ? std::move(forked) : Process::Spawn(options);
}

absl::Status PreloadedTrainer::Load() {
  PELAB_ASSIGN_OR_RETURN(const File file, FileNow());
  if (running_ && running_->file == file && !running_->process.WaitFor(absl::ZeroDuration()))
    return absl::OkStatus();
  running_.reset();
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
    return ErrnoStatus(errno, "cannot create a pair of sockets");
  UniqueFd here(ends[0]);
  const UniqueFd there(ends[1]);
  SpawnOptions options;
  options.argv = {settings_.trainer,        "preload", "--control-fd",
                  absl::StrCat(kControlFd), "--room",  std::string(kRoomForCommandLine, '.')};
  options.env = settings_.environment;
  options.env.emplace_back(kTrainerIdVariable, settings_.trainer_id);
  options.unset_env = {rpc::kTokenVariable, kTraceparentVariable};  // as for every trainer
  options.fds = {{there.get(), kControlFd}};
  PELAB_ASSIGN_OR_RETURN(Process process, Process::Spawn(options));
  running_.emplace(Running{std::move(process), std::move(here), file});
  return absl::OkStatus();
}

absl::StatusOr<pid_t> PreloadedTrainer::Ask(const SpawnOptions& options, int go) {
  PELAB_RETURN_IF_ERROR(Load());
  PELAB_ASSIGN_OR_RETURN(const UniqueFd request, WriteRequest(options));
  std::vector<int> descriptors = {request.get(), go};
  for (const auto& [here, there] : options.fds) descriptors.push_back(here);
  PELAB_RETURN_IF_ERROR(SendDescriptors(running_->control.get(), descriptors));
  PELAB_ASSIGN_OR_RETURN(const std::string answer,
                         ReceiveAnswer(running_->control.get(), settings_.patience));
  pid_t pid = 0;
  if (absl::SimpleAtoi(answer, &pid) && pid > 0) return pid;
  return absl::UnavailableError(
      answer.empty() ? "the preloaded trainer has ended"
                     : absl::StrCat("the preloaded trainer answered \"", Escape(answer), "\""));
}

absl::StatusOr<Process> PreloadedTrainer::Fork(const SpawnOptions& options) {
  MutexLock lock(&mutex_);
  if (failures_ >= kMostFailures) return absl::UnavailableError("trainers are not preloaded");
  // The trainer waits until it is known as a child of this process. If it never becomes one, the
  // end of the pipe ends it.
  PELAB_ASSIGN_OR_RETURN(Pipe go, MakePipe());
  const absl::StatusOr<pid_t> pid = Ask(options, go.read.get());
  go.read.Reset();
  absl::StatusOr<Process> process = pid.ok() ? Process::Adopt(*pid) : pid.status();
  if (process.ok() && write(go.write.get(), "g", 1) != 1)
    process = ErrnoStatus(errno, "cannot let a forked trainer begin");
  if (process.ok()) {
    failures_ = 0;
    has_forked_ = true;
    return process;
  }
  running_.reset();
  ++failures_;
  const bool last = failures_ == kMostFailures;
  spdlog::log(has_forked_ || last ? spdlog::level::warn : spdlog::level::debug, "{}; {}",
              std::string(process.status().message()),
              last ? "from now on every trainer loads LibTorch itself"
                   : "this trainer loads LibTorch itself");
  return process;
}

}  // namespace pelab::agent
