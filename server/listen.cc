#include "server/listen.h"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/file.h"
#include "core/base/status.h"

namespace pelab {
namespace {

using AddressList = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;

std::string CannotListen(const rpc::Address& address) {
  return absl::StrCat("cannot listen on ", address.ToString());
}

absl::Status InUse(const rpc::Address& address) {
  return absl::AlreadyExistsError(
      absl::StrCat(CannotListen(address), ": another program listens there"));
}

absl::Status BindError(const rpc::Address& address, int error) {
  return error == EADDRINUSE ? InUse(address) : ErrnoStatus(error, CannotListen(address));
}

sockaddr_un UnixName(const rpc::Address& address) {
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  std::memcpy(name.sun_path, address.path.c_str(),
              std::min(address.path.size(), sizeof(name.sun_path) - 1));
  return name;
}

absl::Status CheckUnix(const rpc::Address& address) {
  struct stat info {};
  if (lstat(address.path.c_str(), &info) != 0) {
    if (errno != ENOENT) return ErrnoStatus(errno, absl::StrCat("cannot look at ", address.path));
    const std::string directory = DirectoryOf(address.path);
    if (stat(directory.c_str(), &info) != 0) return ErrnoStatus(errno, CannotListen(address));
    return absl::OkStatus();
  }
  if (!S_ISSOCK(info.st_mode)) {
    return absl::FailedPreconditionError(
        absl::StrCat(CannotListen(address), ": there is a file that is not a socket"));
  }
  // A socket whose queue of connections is full belongs to a program too, which is then busy.
  const UniqueFd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const sockaddr_un name = UnixName(address);
  if (connect(fd.get(), reinterpret_cast<const sockaddr*>(&name), sizeof(name)) == 0 ||
      errno == EAGAIN) {
    return InUse(address);
  }
  return absl::OkStatus();
}

absl::StatusOr<AddressList> Resolve(const rpc::Address& address) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE;
  addrinfo* found = nullptr;
  const int rc =
      getaddrinfo(address.host.c_str(), std::to_string(address.port).c_str(), &hints, &found);
  if (rc != 0) {
    return absl::InvalidArgumentError(absl::StrCat(CannotListen(address), ": ", gai_strerror(rc)));
  }
  return AddressList(found, &freeaddrinfo);
}

UniqueFd TcpSocket(int family) {
  UniqueFd fd(socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const int on = 1;
  setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  // Accepted connections inherit this. A small message is then sent at once.
  setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  return fd;
}

absl::Status CheckTcp(const rpc::Address& address) {
  PELAB_ASSIGN_OR_RETURN(const AddressList found, Resolve(address));
  const UniqueFd fd = TcpSocket(found->ai_family);
  if (bind(fd.get(), found->ai_addr, found->ai_addrlen) == 0) return absl::OkStatus();
  return BindError(address, errno);
}

int PortOf(int fd) {
  sockaddr_storage name{};
  socklen_t size = sizeof(name);
  if (getsockname(fd, reinterpret_cast<sockaddr*>(&name), &size) != 0) return 0;
  // The port is at the same place for both families.
  return ntohs(reinterpret_cast<const sockaddr_in*>(&name)->sin_port);
}

absl::StatusOr<BoundAddress> BindUnix(const rpc::Address& address) {
  PELAB_RETURN_IF_ERROR(CheckUnix(address));
  unlink(address.path.c_str());
  UniqueFd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const sockaddr_un name = UnixName(address);
  if (bind(fd.get(), reinterpret_cast<const sockaddr*>(&name), sizeof(name)) != 0) {
    return BindError(address, errno);
  }
  BoundAddress bound{.address = address, .sockets = {}};
  bound.sockets.push_back(std::move(fd));
  return bound;
}

// A name such as localhost may stand for addresses that this machine does not have: one address is
// enough. A port that another program uses is an error, because clients would reach that program.
absl::StatusOr<BoundAddress> BindTcp(const rpc::Address& address) {
  PELAB_ASSIGN_OR_RETURN(const AddressList found, Resolve(address));
  BoundAddress bound{.address = address, .sockets = {}};
  int error = EADDRNOTAVAIL;
  for (const addrinfo* at = found.get(); at != nullptr; at = at->ai_next) {
    // The port is at the same place for both families.
    reinterpret_cast<sockaddr_in*>(at->ai_addr)->sin_port =
        htons(static_cast<std::uint16_t>(bound.address.port));
    UniqueFd fd = TcpSocket(at->ai_family);
    if (!fd || bind(fd.get(), at->ai_addr, at->ai_addrlen) != 0) {
      error = errno;
      if (error == EADDRINUSE) break;
      continue;
    }
    if (bound.address.port == 0) bound.address.port = PortOf(fd.get());
    bound.sockets.push_back(std::move(fd));
  }
  if (bound.sockets.empty() || error == EADDRINUSE) return BindError(address, error);
  return bound;
}

}  // namespace

absl::Status CheckFree(const rpc::Address& address) {
  return address.is_unix ? CheckUnix(address) : CheckTcp(address);
}

absl::StatusOr<BoundAddress> Bind(const rpc::Address& address) {
  return address.is_unix ? BindUnix(address) : BindTcp(address);
}

}  // namespace pelab
