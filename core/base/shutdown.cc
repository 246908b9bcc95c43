#include "core/base/shutdown.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>

#include <cerrno>
#include <cstdint>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/mutex.h"
#include "core/base/status.h"

namespace pelab {
namespace {

// A program that was started with nohup shall outlive its terminal.
bool IsIgnored(int signal) {
  struct sigaction now {};
  return sigaction(signal, nullptr, &now) == 0 && now.sa_handler == SIG_IGN;
}

sigset_t ShutdownSignals() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGINT);
  if (!IsIgnored(SIGHUP)) sigaddset(&set, SIGHUP);
  return set;
}

absl::string_view NameOf(std::uint32_t signal) {
  return signal == SIGINT ? "SIGINT" : signal == SIGHUP ? "SIGHUP" : "SIGTERM";
}

void Ring(int event_fd) {
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = write(event_fd, &one, sizeof one);
}

// Whether the pipe has ended. Data from the parent has no meaning and is discarded.
bool AtEnd(int fd) {
  char buffer[256];
  const ssize_t got = read(fd, buffer, sizeof buffer);
  return got == 0 || (got < 0 && errno != EINTR && errno != EAGAIN);
}

}  // namespace

ShutdownSignal::ShutdownSignal() {
  const sigset_t set = ShutdownSignals();
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  signal(SIGPIPE, SIG_IGN);
  signal(SIGXFSZ, SIG_IGN);
  signals_.Reset(signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
  wake_.Reset(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  requested_event_.Reset(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  thread_ = std::thread([this] { Watch(); });
}

ShutdownSignal::~ShutdownSignal() {
  stop_ = true;
  Wake();
  thread_.join();
}

absl::Status ShutdownSignal::WatchParent(int fd) {
  const int flags = fcntl(fd, F_GETFD);
  if (flags < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("--parent-fd ", fd,
                     " is not an open file descriptor; allowed: one inherited from the parent"));
  }
  fcntl(fd, F_SETFD, flags | FD_CLOEXEC);
  {
    MutexLock lock(&mutex_);
    parent_.Reset(fd);
  }
  Wake();
  return absl::OkStatus();
}

void ShutdownSignal::OnRequest(const Callback& callback) {
  MutexLock calling(&calling_);
  std::string reason;
  int count = 0;
  {
    MutexLock lock(&mutex_);
    callback_ = callback;
    reason = reason_;
    count = count_;
  }
  if (count > 0 && callback) callback(reason, count);
}

void ShutdownSignal::Request(absl::string_view reason) {
  MutexLock calling(&calling_);
  Callback callback;
  int count = 0;
  {
    MutexLock lock(&mutex_);
    if (count_ == 0) reason_ = std::string(reason);
    if (count_ == 0) Ring(requested_event_.get());  // before anybody can see the request
    count = ++count_;
    callback = callback_;
  }
  if (callback) callback(reason, count);
}

std::string ShutdownSignal::reason() const {
  MutexLock lock(&mutex_);
  return reason_;
}

void ShutdownSignal::Wait() const { WaitFor(absl::InfiniteDuration()); }

bool ShutdownSignal::WaitFor(absl::Duration timeout) const {
  MutexLock lock(&mutex_);
  const auto asked = [this] { return requested(); };
  return mutex_.AwaitFor(asked, timeout);
}

void ShutdownSignal::Wake() { Ring(wake_.get()); }

void ShutdownSignal::Watch() {
  while (!stop_) {
    int parent = -1;
    {
      MutexLock lock(&mutex_);
      parent = parent_.get();
    }
    pollfd fds[] = {{signals_.get(), POLLIN, 0}, {wake_.get(), POLLIN, 0}, {parent, POLLIN, 0}};
    if (poll(fds, 3, -1) < 0) continue;
    if (fds[1].revents != 0) {
      std::uint64_t count = 0;
      [[maybe_unused]] const ssize_t got = read(wake_.get(), &count, sizeof count);
    }
    signalfd_siginfo info{};
    while (read(signals_.get(), &info, sizeof info) == static_cast<ssize_t>(sizeof info)) {
      Request(NameOf(info.ssi_signo));
    }
    if (fds[2].revents != 0 && AtEnd(parent)) {
      {
        MutexLock lock(&mutex_);
        if (parent_.get() == parent) parent_.Reset();
      }
      Request("parent ended");
    }
  }
}

}  // namespace pelab
