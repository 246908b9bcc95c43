#include "core/base/standard_descriptors.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <iostream>

namespace pelab {

void OpenClosedStandardDescriptors() {
  for (int descriptor = STDIN_FILENO; descriptor <= STDERR_FILENO; ++descriptor) {
    if (fcntl(descriptor, F_GETFD) != -1 || errno != EBADF) continue;
    // open() returns the lowest free number, which is this one. It is opened in the wrong direction
    // on purpose, so that using the descriptor still fails.
    (void)open("/dev/null", descriptor == STDIN_FILENO ? O_WRONLY : O_RDONLY);
  }
}

std::uint64_t RaiseDescriptorLimit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return 0;
  rlimit raised = limit;
  raised.rlim_cur = limit.rlim_max;
  return setrlimit(RLIMIT_NOFILE, &raised) == 0 ? raised.rlim_cur : limit.rlim_cur;
}

int FlushStandardOutput(const char* program, int status) {
  std::cout.flush();
  if (std::cout.good() && std::fflush(stdout) == 0) return status;
  if (errno == EPIPE) return status;
  std::fprintf(stderr, "%s: cannot write to standard output%s%s\n", program, errno == 0 ? "" : ": ",
               errno == 0 ? "" : std::strerror(errno));
  return status == 0 ? 1 : status;
}

}  // namespace pelab
