// This library is preloaded (LD_PRELOAD) into a program. For each request it forks the program
// and runs main() in the fork. The dynamic linker and the constructors, which take most of a
// short command's time, run once. tests/support/forked_program.py asks for the forks, on the
// socket PELAB_FORK_SOCKET. A request is strings that end with '\0' (folder, number of arguments,
// arguments, environment), and comes with the standard input, output and error. The answer is the
// PID of the fork, which is a child of the program's parent.
#include <dlfcn.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

using Main = int (*)(int, char**, char**);
using Function = void (*)();
using Start = int (*)(Main, int, char**, Function, Function, Function, void*);

constexpr int kFiles = 3;
Main program = nullptr;
const char* channel_number = nullptr;
std::array<char, std::size_t{1} << 20> request;
std::array<char*, std::size_t{1} << 16> words;

int Number(const char* text) { return static_cast<int>(std::strtol(text, nullptr, 10)); }

[[noreturn]] void Begin(std::size_t size, const std::array<int, kFiles>& files) {
  if (setsid() < 0) _exit(125);
  for (int i = 0; i < kFiles; ++i) {
    if (dup2(files[i], i) != i) _exit(125);
  }
  for (const int file : files) {
    if (file >= kFiles) close(file);
  }
  std::size_t count = 0;
  for (char* at = request.data(); at < request.data() + size; at += std::strlen(at) + 1) {
    words[count++] = at;
    if (count + 2 > words.size()) _exit(125);
  }
  if (chdir(words[0]) != 0) _exit(125);
  const int arguments = Number(words[1]);
  // The arguments end with a null pointer, too, so the environment moves up.
  char** const begin = words.data() + 2;
  std::memmove(begin + arguments + 1, begin + arguments,
               (count - 2 - static_cast<std::size_t>(arguments)) * sizeof(char*));
  begin[arguments] = nullptr;
  words[count + 1] = nullptr;
  environ = begin + arguments + 1;
  std::exit(program(arguments, begin, environ));
}

// Returns false when nobody will ask again.
bool Serve(int channel) {
  std::array<int, kFiles> files{};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof files)> control{};
  iovec text{request.data(), request.size()};
  msghdr message{};
  message.msg_iov = &text;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  const ssize_t size = recvmsg(channel, &message, 0);
  const cmsghdr* const sent = size > 0 ? CMSG_FIRSTHDR(&message) : nullptr;
  if (sent == nullptr || (message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0) return false;
  std::memcpy(files.data(), CMSG_DATA(sent), sizeof files);
  // fork() would make it a child of this process, which nobody else could wait for.
  const auto pid = static_cast<pid_t>(
      syscall(SYS_clone, CLONE_PARENT | SIGCHLD, nullptr, nullptr, nullptr, nullptr));
  if (pid == 0) {
    close(channel);
    Begin(static_cast<std::size_t>(size), files);
  }
  for (const int file : files) close(file);
  std::array<char, 32> answer{};
  const int length = std::snprintf(answer.data(), answer.size(), "%d", pid);
  return send(channel, answer.data(), static_cast<std::size_t>(length), MSG_NOSIGNAL) == length;
}

int ServeAll(int /*argc*/, char** /*argv*/, char** /*environment*/) {
  const int channel = Number(channel_number);
  while (Serve(channel)) {
  }
  _exit(0);
}

}  // namespace

// The C library's, which calls main.
// NOLINTNEXTLINE(bugprone-reserved-identifier)
extern "C" int __libc_start_main(Main main, int argc, char** argv, Function init, Function fini,
                                 Function loader_fini, void* stack_end) {
  const auto start = reinterpret_cast<Start>(dlsym(RTLD_NEXT, "__libc_start_main"));
  program = main;
  channel_number = std::getenv("PELAB_FORK_SOCKET");
  return start(channel_number == nullptr ? main : ServeAll, argc, argv, init, fini, loader_fini,
               stack_end);
}
