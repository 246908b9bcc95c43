#include "worker/trainer/protocol/stop.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <string>
#include <thread>

#include "worker/trainer/protocol/error.h"

namespace pelab::trainer {
namespace {

volatile std::sig_atomic_t stop_requested = 0;

extern "C" void OnStopSignal(int) { stop_requested = 1; }

void WatchParent(int fd) {
  char byte;
  for (;;) {
    const ssize_t got = read(fd, &byte, 1);
    if (got > 0 || (got < 0 && errno == EINTR)) continue;
    _exit(kExitStopped);
  }
}

}  // namespace

void InstallStopSignals() {
  struct sigaction action = {};
  action.sa_handler = OnStopSignal;
  action.sa_flags = SA_RESTART;
  sigaction(SIGTERM, &action, nullptr);
  sigaction(SIGINT, &action, nullptr);
  // write() also returns an error in the cases of these signals, and that error can be reported.
  signal(SIGPIPE, SIG_IGN);
  signal(SIGXFSZ, SIG_IGN);
}

bool StopRequested() { return stop_requested != 0; }

void SetStopRequested(bool requested) { stop_requested = requested ? 1 : 0; }

void ThrowIfStopped() {
  if (StopRequested()) throw Stopped{};
}

void EndWithParent(int fd) {
  const int flags = fcntl(fd, F_GETFD);
  if (flags < 0) {
    throw TrainerError(ErrorKind::kIo,
                       "--parent-fd " + std::to_string(fd) + " is not an open descriptor");
  }
  fcntl(fd, F_SETFD, flags | FD_CLOEXEC);
  // Blocks all signals in the new thread, so that the main thread gets them.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  std::thread(WatchParent, fd).detach();
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

}  // namespace pelab::trainer
