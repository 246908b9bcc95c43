#include "server/listen.h"

#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <cerrno>
#include <cstring>
#include <memory>

#include "absl/strings/str_cat.h"
#include "core/base/file.h"
#include "core/base/status.h"
#include "core/base/unique_fd.h"

namespace pelab {
namespace {

absl::Status InUse(const rpc::Address& address) {
  return absl::AlreadyExistsError(
      absl::StrCat("cannot listen on ", address.ToString(), ": another program listens there"));
}

absl::Status CheckUnix(const rpc::Address& address) {
  struct stat info {};
  if (lstat(address.path.c_str(), &info) != 0) {
    if (errno != ENOENT) return ErrnoStatus(errno, absl::StrCat("cannot look at ", address.path));
    const std::string directory = DirectoryOf(address.path);
    if (stat(directory.c_str(), &info) != 0) {
      return ErrnoStatus(errno, absl::StrCat("cannot listen on ", address.ToString()));
    }
    return absl::OkStatus();
  }
  if (!S_ISSOCK(info.st_mode)) {
    return absl::FailedPreconditionError(absl::StrCat("cannot listen on ", address.ToString(),
                                                      ": there is a file that is not a socket"));
  }
  const UniqueFd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  std::memcpy(name.sun_path, address.path.c_str(),
              std::min(address.path.size(), sizeof(name.sun_path) - 1));
  if (connect(fd.get(), reinterpret_cast<const sockaddr*>(&name), sizeof(name)) == 0) {
    return InUse(address);
  }
  return absl::OkStatus();
}

absl::Status CheckTcp(const rpc::Address& address) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE;
  addrinfo* found = nullptr;
  const int rc =
      getaddrinfo(address.host.c_str(), std::to_string(address.port).c_str(), &hints, &found);
  if (rc != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("cannot listen on ", address.ToString(), ": ", gai_strerror(rc)));
  }
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owned(found, &freeaddrinfo);
  const UniqueFd fd(socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int on = 1;
  setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  if (bind(fd.get(), found->ai_addr, found->ai_addrlen) == 0) return absl::OkStatus();
  if (errno == EADDRINUSE) return InUse(address);
  return ErrnoStatus(errno, absl::StrCat("cannot listen on ", address.ToString()));
}

}  // namespace

absl::Status CheckFree(const rpc::Address& address) {
  return address.is_unix ? CheckUnix(address) : CheckTcp(address);
}

}  // namespace pelab
