#include "client/terminal/standard_output.h"

#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string_view>

#include "client/options/options.h"

namespace pelab::client {
namespace {

// Another process that shares standard output may have made it non-blocking.
void WaitUntilWritable() {
  pollfd output = {.fd = STDOUT_FILENO, .events = POLLOUT, .revents = 0};
  (void)poll(&output, 1, -1);
}

}  // namespace

void StandardOutput::Write(const std::string& text) {
  std::string_view rest = text;
  while (error_ == 0 && !rest.empty()) {
    const ssize_t written = write(STDOUT_FILENO, rest.data(), rest.size());
    if (written >= 0) {
      rest.remove_prefix(static_cast<std::size_t>(written));
    } else if (errno == EAGAIN) {
      WaitUntilWritable();
    } else if (errno != EINTR) {
      error_ = errno;
    }
  }
}

int StandardOutput::Finish(int status) {
  // Network file systems and quotas may report lost data only when a descriptor is closed.
  const int copy = dup(STDOUT_FILENO);
  if (copy >= 0 && close(copy) != 0 && error_ == 0) error_ = errno;
  if (error_ == 0 || error_ == EPIPE) return status;
  std::fprintf(stderr, "pelab: cannot write to standard output: %s\n", std::strerror(error_));
  return status == kExitOk ? kExitFailed : status;
}

}  // namespace pelab::client
