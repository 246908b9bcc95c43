#include "worker/trainer/command/preload.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <system_error>
#include <utility>

#include "worker/trainer/config/blas_kernels.h"
#include "worker/trainer/protocol/error.h"
#include "worker/trainer/protocol/files.h"

namespace pelab::trainer {
namespace {

// Marks a trainer and what it starts, as worker/agent/strays.h has it.
constexpr char kTrainerIdVariable[] = "PELAB_TRAINER_ID";
// The descriptors of a request are copied above the numbers that they get in the trainer.
constexpr int kAboveAll = 10;
constexpr std::size_t kMostDescriptors = 16;

struct CommandLine {
  char* begin = nullptr;
  char* end = nullptr;
};
CommandLine& OfProcess() {
  static CommandLine line;
  return line;
}

// Shows the words, as far as they fit, in place of those that the process was started with. The
// name of the program stays where it is, because libraries keep pointers to it.
void ShowCommandLine(const std::vector<std::string>& words) {
  const CommandLine& line = OfProcess();
  if (line.begin == nullptr) return;
  char* at = line.begin + std::strlen(line.begin) + 1;
  for (const std::string& word : words) {
    if (at + word.size() + 1 > line.end) break;
    std::memcpy(at, word.c_str(), word.size() + 1);
    at += word.size() + 1;
  }
  std::memset(at, 0, static_cast<std::size_t>(line.end - at));
}

// What a trainer is to be.
struct Request {
  std::vector<std::string> words;        // after the program's name
  std::vector<std::string> environment;  // NAME=VALUE, the whole environment
  std::string directory;
  std::vector<int> numbers;      // of the descriptors in the trainer
  std::vector<int> descriptors;  // here, in the order of `numbers`
  int go = -1;                   // readable once the trainer may begin
};

[[noreturn]] void Refuse(const std::string& what) { throw TrainerError(ErrorKind::kIo, what); }

bool HasOneThread() {
  const std::filesystem::directory_iterator tasks("/proc/self/task");
  return std::distance(tasks, std::filesystem::directory_iterator()) == 1;
}

// Receives one message. Its descriptors are close-on-exec. False at the end of the socket.
bool Receive(int socket, std::vector<int>* descriptors) {
  char byte = 0;
  iovec data{&byte, 1};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * kMostDescriptors)];
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  ssize_t got = 0;
  while ((got = recvmsg(socket, &message, MSG_CMSG_CLOEXEC)) < 0 && errno == EINTR) {
  }
  if (got < 0) Refuse(std::string("cannot read the control socket: ") + std::strerror(errno));
  for (cmsghdr* part = CMSG_FIRSTHDR(&message); part != nullptr;
       part = CMSG_NXTHDR(&message, part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t count = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    descriptors->resize(count);
    std::memcpy(descriptors->data(), CMSG_DATA(part), count * sizeof(int));
  }
  return got > 0;
}

// Reads the strings of a request one after another.
class Strings {
 public:
  explicit Strings(std::string text) : text_(std::move(text)) {}
  bool AtEnd() const { return at_ == text_.size(); }
  std::string Next() {
    const std::size_t end = text_.find('\0', at_);
    if (end == std::string::npos) Refuse("a request ends too early");
    std::string next = text_.substr(at_, end - at_);
    at_ = end + 1;
    return next;
  }
  int NextNumber() {
    const std::string text = Next();
    int number = -1;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc() || end != text.data() + text.size() || number < 0)
      Refuse("\"" + text + "\" is no number of a request");
    return number;
  }

 private:
  std::string text_;
  std::size_t at_ = 0;
};

// The first descriptor has the request's strings, the second is `go`, the others are the trainer's.
Request ReadRequest(const std::vector<int>& descriptors) {
  if (descriptors.size() < 2) Refuse("a request has at least two descriptors");
  Strings strings(ReadFile("/proc/self/fd/" + std::to_string(descriptors[0])));
  Request request;
  request.go = descriptors[1];
  request.descriptors.assign(descriptors.begin() + 2, descriptors.end());
  request.directory = strings.Next();
  for (std::size_t i = 0; i < request.descriptors.size(); ++i) {
    const int number = strings.NextNumber();
    if (number >= kAboveAll) {
      Refuse("descriptor " + std::to_string(number) + " is not allowed; allowed: 0 to " +
             std::to_string(kAboveAll - 1));
    }
    request.numbers.push_back(number);
  }
  for (int left = strings.NextNumber(); left > 0; --left) request.words.push_back(strings.Next());
  while (!strings.AtEnd()) request.environment.push_back(strings.Next());
  return request;
}

// Makes /proc/PID/environ, which shows what a process was started with, name this trainer. Both ids
// have the same length.
void ShowTrainerId(const std::string& entry, char* started_with) {
  const std::size_t name = sizeof kTrainerIdVariable;  // with the "="
  if (started_with == nullptr || entry.compare(0, name, std::string(kTrainerIdVariable) + "=") != 0)
    return;
  if (std::strlen(started_with) == entry.size() - name)
    std::copy(entry.begin() + static_cast<std::ptrdiff_t>(name), entry.end(), started_with);
}

void SetEnvironment(const std::vector<std::string>& environment) {
  char* const started_with = std::getenv(kTrainerIdVariable);
  const char* const kernels = std::getenv(kBlasKernelsVariable);
  clearenv();
  // OpenBLAS has obeyed it. A worker learns of it from the first trainer that it forks.
  if (kernels != nullptr) setenv(kBlasKernelsVariable, kernels, 1);
  for (const std::string& entry : environment) {
    ShowTrainerId(entry, started_with);
    const std::size_t equals = entry.find('=');
    if (equals != std::string::npos)
      setenv(entry.substr(0, equals).c_str(), entry.c_str() + equals + 1, 1);
  }
}

[[noreturn]] void EndTrainer(const std::string& what) {
  std::fprintf(stderr, "pelab-trainer: %s: %s\n", what.c_str(), std::strerror(errno));
  _exit(1);
}

// Turns this forked process into the trainer that the request describes.
void Become(const Request& request, int control_fd) {
  close(control_fd);
  const auto move_up = [](int descriptor) {
    const int copy = fcntl(descriptor, F_DUPFD_CLOEXEC, kAboveAll);
    close(descriptor);
    return copy;
  };
  const int go = move_up(request.go);
  std::vector<int> copies;
  for (const int descriptor : request.descriptors) copies.push_back(move_up(descriptor));
  for (std::size_t i = 0; i < copies.size(); ++i) {
    if (dup2(copies[i], request.numbers[i]) < 0) EndTrainer("cannot take over a descriptor");
    close(copies[i]);
  }
  char byte = 0;
  ssize_t got = 0;
  while ((got = read(go, &byte, 1)) < 0 && errno == EINTR) {
  }
  if (got != 1) _exit(1);  // nobody waits for this trainer
  close(go);
  SetEnvironment(request.environment);
  ShowCommandLine(request.words);
  if (!request.directory.empty() && chdir(request.directory.c_str()) != 0)
    EndTrainer("cannot enter the directory " + request.directory);
}

// Forks a trainer whose parent has ended, so that another process adopts it. Returns its process
// id, and 0 in the trainer.
pid_t ForkOrphan() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0)
    Refuse(std::string("cannot create a pipe: ") + std::strerror(errno));
  const pid_t between = fork();
  if (between < 0) {
    const std::string why = std::strerror(errno);
    close(ends[0]);
    close(ends[1]);
    Refuse("cannot fork: " + why);
  }
  if (between == 0) {
    const pid_t trainer = fork();
    if (trainer == 0) {
      setpgid(0, 0);
      close(ends[0]);
      close(ends[1]);
      return 0;
    }
    if (trainer > 0) setpgid(trainer, trainer);  // whichever of the two comes first
    const ssize_t written = write(ends[1], &trainer, sizeof trainer);
    _exit(written == sizeof trainer ? 0 : 1);
  }
  close(ends[1]);
  pid_t trainer = -1;
  const ssize_t got = read(ends[0], &trainer, sizeof trainer);
  close(ends[0]);
  while (waitpid(between, nullptr, 0) < 0 && errno == EINTR) {
  }
  if (got != sizeof trainer || trainer < 0) Refuse("cannot fork a trainer");
  return trainer;
}

void Answer(int socket, const std::string& text) {
  if (send(socket, text.data(), text.size(), MSG_NOSIGNAL) < 0 && errno != EPIPE)
    Refuse(std::string("cannot write to the control socket: ") + std::strerror(errno));
}

}  // namespace

void RememberCommandLine(int argc, char** argv) {
  if (argc > 0) OfProcess() = {argv[0], argv[argc - 1] + std::strlen(argv[argc - 1]) + 1};
}

std::optional<std::vector<std::string>> ForkTrainers(int control_fd) {
  fcntl(control_fd, F_SETFD, FD_CLOEXEC);
  ShowCommandLine({"preload"});  // without the room for longer command lines
  while (true) {
    std::vector<int> descriptors;
    if (!Receive(control_fd, &descriptors)) return std::nullopt;
    std::string answer;
    try {
      if (!HasOneThread()) Refuse("this process has threads, which a fork would lose");
      Request request = ReadRequest(descriptors);
      const pid_t trainer = ForkOrphan();
      if (trainer == 0) {
        close(descriptors[0]);
        Become(request, control_fd);
        return std::move(request.words);
      }
      answer = std::to_string(trainer);
    } catch (const TrainerError& error) {
      answer = std::string("error: ") + error.what();
    }
    for (const int descriptor : descriptors) close(descriptor);
    Answer(control_fd, answer);
  }
}

}  // namespace pelab::trainer
