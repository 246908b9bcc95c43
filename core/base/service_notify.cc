#include "core/base/service_notify.h"

#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "core/base/log.h"
#include "core/base/status.h"
#include "core/base/unique_fd.h"

namespace pelab {
namespace {

constexpr std::size_t kMostPath = sizeof(sockaddr_un{}.sun_path) - 1;
// A manager that hangs must not keep the program from serving.
constexpr timeval kSendTimeout = {.tv_sec = 5, .tv_usec = 0};

std::string TakeVariable(const char* name) {
  const char* value = std::getenv(name);
  std::string taken = value == nullptr ? "" : value;
  unsetenv(name);
  return taken;
}

absl::Status CheckSocket(const std::string& socket) {
  const bool known = socket.empty() || socket[0] == '/' || socket[0] == '@';
  if (known && socket.size() <= kMostPath) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("cannot tell the service manager anything: NOTIFY_SOCKET is \"", socket,
                   "\"; allowed: an absolute path or @NAME, at most ", kMostPath, " bytes long"));
}

// WATCHDOG_PID says for which process the limit is meant; without it, for whoever reads it.
absl::StatusOr<absl::Duration> ReadPatience(const std::string& usec, const std::string& pid) {
  if (usec.empty() || (!pid.empty() && pid != absl::StrCat(getpid()))) {
    return absl::InfiniteDuration();
  }
  std::int64_t microseconds = 0;
  if (absl::SimpleAtoi(usec, &microseconds) && microseconds > 0) {
    return absl::Microseconds(microseconds);
  }
  return absl::InvalidArgumentError(
      absl::StrCat("cannot feed the service manager's watchdog: WATCHDOG_USEC is \"", usec,
                   "\"; allowed: a whole number of microseconds greater than 0"));
}

// A value ends at the end of its line.
std::string OneLine(absl::string_view text) { return absl::StrReplaceAll(text, {{"\n", " "}}); }

}  // namespace

absl::StatusOr<ServiceManager> ServiceManager::FromEnvironment() {
  ServiceManager manager;
  std::string socket = TakeVariable("NOTIFY_SOCKET");
  const std::string usec = TakeVariable("WATCHDOG_USEC");
  const std::string pid = TakeVariable("WATCHDOG_PID");
  PELAB_RETURN_IF_ERROR(CheckSocket(socket));
  if (socket.empty()) return manager;  // nobody would hear that the program is alive
  manager.socket_ = std::move(socket);
  PELAB_ASSIGN_OR_RETURN(manager.patience_, ReadPatience(usec, pid));
  return manager;
}

absl::Status ServiceManager::Ready(absl::string_view status) const {
  return Send(absl::StrCat("READY=1\nSTATUS=", OneLine(status)));
}

absl::Status ServiceManager::Stopping(absl::string_view status) const {
  return Send(absl::StrCat("STOPPING=1\nSTATUS=", OneLine(status)));
}

absl::Status ServiceManager::Alive() const { return Send("WATCHDOG=1"); }

absl::Status ServiceManager::Send(const std::string& message) const {
  if (socket_.empty()) return absl::OkStatus();
  const std::string what = absl::StrCat("cannot tell the service manager at ", socket_);
  const UniqueFd fd(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!fd) return ErrnoStatus(errno, what);
  setsockopt(fd.get(), SOL_SOCKET, SO_SNDTIMEO, &kSendTimeout, sizeof kSendTimeout);
  sockaddr_un address{.sun_family = AF_UNIX};
  std::memcpy(address.sun_path, socket_.data(), socket_.size());
  if (socket_[0] == '@') address.sun_path[0] = '\0';  // the abstract namespace
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + socket_.size());
  if (sendto(fd.get(), message.data(), message.size(), MSG_NOSIGNAL,
             reinterpret_cast<const sockaddr*>(&address), size) < 0) {
    return ErrnoStatus(errno, what);
  }
  return absl::OkStatus();
}

Watchdog::Watchdog(ServiceManager manager, Check check)
    : manager_(std::move(manager)), check_(std::move(check)) {
  if (manager_.patience() < absl::InfiniteDuration()) thread_ = std::thread([this] { Run(); });
}

Watchdog::~Watchdog() {
  over_.Notify();
  if (thread_.joinable()) thread_.join();
}

void Watchdog::Run() {
  // A check may take as long as the pause before it, so that a third is left for the message.
  const absl::Duration third = manager_.patience() / 3;
  while (!over_.WaitFor(third)) {
    absl::Status status = check_(third);
    if (status.ok()) status = manager_.Alive();
    if (!status.ok()) spdlog::error("watchdog: {}", std::string(status.message()));
  }
}

}  // namespace pelab
