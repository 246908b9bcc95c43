#include "server/acceptor.h"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/base/clock.h"
#include "core/base/log.h"
#include "core/base/status.h"
#include "core/rpc/channel.h"
#include "server/limits.h"

namespace pelab {
namespace {

constexpr int kQueue = 1024;   // connections that wait for accept()
constexpr int kPauseMs = 100;  // until accept() is tried again where it failed
constexpr absl::Duration kBetweenWarnings = absl::Seconds(30);
constexpr char kMoreFiles[] =
    "; raise the limit of open files (ulimit -n, LimitNOFILE=) if honest clients need more";

int DescriptorLimit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur > 1'000'000'000) return 1'000'000'000;
  return static_cast<int>(limit.rlim_cur);
}

// A small limit is shared half and half.
int DescriptorsForConnections() {
  const int limit = DescriptorLimit();
  return std::max(limit / 2, limit - limits::kOwnDescriptors);
}

// What may pass by itself once others give something back. Any other error belongs to the
// connection alone, which has gone.
bool IsShortage(int error) {
  return error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM;
}

// The address without the port. Peers of a Unix socket have none.
std::string HostOf(const sockaddr_storage& peer, socklen_t size) {
  std::array<char, NI_MAXHOST> host{};
  if (peer.ss_family == AF_UNIX ||
      getnameinfo(reinterpret_cast<const sockaddr*>(&peer), size, host.data(), host.size(), nullptr,
                  0, NI_NUMERICHOST) != 0) {
    return "";
  }
  return host.data();
}

}  // namespace

absl::StatusOr<std::unique_ptr<Acceptor>> Acceptor::Take(const rpc::Address& address) {
  PELAB_ASSIGN_OR_RETURN(BoundAddress bound, Bind(address));
  return std::unique_ptr<Acceptor>(new Acceptor(std::move(bound)));
}

Acceptor::~Acceptor() { Stop(); }

absl::Status Acceptor::Start(std::unique_ptr<Connections> connections,
                             const std::optional<RecentConnections::Limits>& limits) {
  ending_.Reset(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!ending_) return ErrnoStatus(errno, "cannot make an event");
  for (const UniqueFd& socket : bound_.sockets) {
    if (listen(socket.get(), kQueue) != 0) {
      return ErrnoStatus(errno, absl::StrCat("cannot listen on ", address().ToString()));
    }
  }
  connections_ = std::move(connections);
  if (limits) recent_.emplace(*limits);
  thread_ = std::thread([this] { Run(); });
  return absl::OkStatus();
}

void Acceptor::Stop() {
  if (thread_.joinable()) {
    const std::uint64_t one = 1;
    (void)!write(ending_.get(), &one, sizeof(one));
    thread_.join();
  }
  if (bound_.sockets.empty()) return;
  bound_.sockets.clear();
  if (address().is_unix) unlink(address().path.c_str());
}

void Acceptor::Run() {
  std::vector<pollfd> watched = {{.fd = ending_.get(), .events = POLLIN, .revents = 0}};
  for (const UniqueFd& socket : bound_.sockets) {
    watched.push_back({.fd = socket.get(), .events = POLLIN, .revents = 0});
  }
  bool short_of_something = false;
  while (true) {
    // During a shortage the sockets stay readable: only the end is waited for.
    poll(watched.data(), short_of_something ? 1 : watched.size(),
         short_of_something ? kPauseMs : -1);
    if (watched[0].revents != 0) return;
    short_of_something = false;
    for (const UniqueFd& socket : bound_.sockets) {
      if (!AcceptAll(socket.get())) short_of_something = true;
    }
  }
}

// False if something is short that others may give back.
bool Acceptor::AcceptAll(int listener) {
  while (true) {
    sockaddr_storage peer{};
    socklen_t size = sizeof(peer);
    UniqueFd fd(
        accept4(listener, reinterpret_cast<sockaddr*>(&peer), &size, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!fd) {
      if (errno == EAGAIN || errno == EWOULDBLOCK) return true;
      if (!IsShortage(errno)) continue;
      Refuse(absl::StrCat(std::strerror(errno), kMoreFiles));
      return false;
    }
    if (fd.get() >= DescriptorsForConnections()) {
      Refuse(
          absl::StrCat(fd.get(), " of ", DescriptorLimit(), " descriptors are in use", kMoreFiles));
      continue;
    }
    if (recent_ && !recent_->Admit(HostOf(peer, size), SystemClock::Instance().Monotonic())) {
      Refuse("there are too many of one address, or in all; they end by themselves");
      continue;
    }
    const int timeout = rpc::kKeepaliveTimeoutMs;
    if (!address().is_unix) {
      setsockopt(fd.get(), IPPROTO_TCP, TCP_USER_TIMEOUT, &timeout, sizeof(timeout));
    }
    Connections::NewConnectionParameters connection;
    connection.listener_fd = listener;
    connection.fd = fd.Release();
    connections_->HandleNewConnection(&connection);
  }
}

void Acceptor::Refuse(const std::string& why) {
  const absl::Time now = absl::Now();
  if (now - warned_ < kBetweenWarnings) return;
  warned_ = now;
  spdlog::warn("connections to {} are refused or wait: {}", address().ToString(), why);
}

}  // namespace pelab
