#include "worker/trainer/protocol/event_stream.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>

#include "worker/trainer/limits.h"
#include "worker/trainer/protocol/error.h"

namespace pelab::trainer {

int TakeStandardOutput() {
  // The new descriptor is above the standard three, even if the caller closed one of them.
  const int fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
  if (fd < 0 || dup2(STDERR_FILENO, STDOUT_FILENO) < 0) {
    throw TrainerError(ErrorKind::kIo,
                       std::string("cannot take standard output: ") + std::strerror(errno));
  }
  return fd;
}

void EventStream::Emit(const std::string& event, const nlohmann::ordered_json& members) {
  nlohmann::ordered_json object = {{"event", event}, {"job", job_}};
  object.update(members);
  std::string line = object.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
  if (line.size() > limits::kLineBytes) {
    throw TrainerError(ErrorKind::kInternal,
                       "event " + event + " would be a line of " + std::to_string(line.size()) +
                           " bytes; allowed: " + std::to_string(limits::kLineBytes));
  }
  std::size_t done = 0;
  while (done < line.size()) {
    const ssize_t written = write(fd_, line.data() + done, line.size() - done);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) {
      throw TrainerError(ErrorKind::kIo,
                         std::string("cannot write an event: ") + std::strerror(errno));
    }
    done += static_cast<std::size_t>(written);
  }
}

}  // namespace pelab::trainer
