#include "worker/agent/trainer_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/clock.h"
#include "core/base/mutex.h"
#include "core/base/status.h"
#include "core/event/trainer_line.h"
#include "worker/agent/limits.h"
#include "worker/agent/line_splitter.h"

namespace pelab::agent {
namespace {

// How often to check again whether to read the output of a trainer that is held back.
constexpr absl::Duration kHeldBackPause = absl::Milliseconds(50);
// After standard output is closed, freeing a GPU's memory may take a while.
constexpr absl::Duration kClosedGrace = absl::Seconds(5);
// For a trainer that hangs: it may still keep its checkpoint.
constexpr absl::Duration kStalledGrace = absl::Seconds(5);

enum class ReadResult { kSome, kNothingNow, kEnd };

// Reads at most one buffer, without waiting.
ReadResult ReadSome(int fd, const std::function<void(absl::string_view)>& on_bytes) {
  char buffer[64 << 10];
  const ssize_t got = read(fd, buffer, sizeof buffer);
  if (got > 0) {
    on_bytes({buffer, static_cast<std::size_t>(got)});
    return ReadResult::kSome;
  }
  return got < 0 && (errno == EAGAIN || errno == EINTR) ? ReadResult::kNothingNow
                                                        : ReadResult::kEnd;
}

// Splits standard output into lines and remembers the first error.
class Lines {
 public:
  Lines(const OutputHandler& handler, absl::Status* error) : handler_(handler), error_(error) {}

  void Feed(absl::string_view bytes) {
    const auto on_line = [this](absl::string_view line) {
      if (error_->ok() && !line.empty()) *error_ = handler_.on_line(line);
    };
    if (!splitter_.Feed(bytes, on_line) && error_->ok()) {
      *error_ =
          absl::InvalidArgumentError(absl::StrCat("the trainer printed a line of more than ",
                                                  limits::kLineBytes, " bytes, the most allowed"));
    }
  }
  bool broken() const { return !error_->ok(); }

 private:
  const OutputHandler& handler_;
  absl::Status* const error_;
  LineSplitter splitter_{limits::kLineBytes};
};

}  // namespace

absl::StatusOr<std::unique_ptr<TrainerProcess>> TrainerProcess::Start(SpawnOptions options,
                                                                      PreloadedTrainer* preloaded) {
  PELAB_ASSIGN_OR_RETURN(Pipe out, MakePipe());
  PELAB_ASSIGN_OR_RETURN(Pipe err, MakePipe());
  UniqueFd wake(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake) return ErrnoStatus(errno, "cannot create an event descriptor");
  fcntl(out.read.get(), F_SETFL, O_NONBLOCK);
  fcntl(err.read.get(), F_SETFL, O_NONBLOCK);
  options.fds.emplace_back(out.write.get(), 1);
  options.fds.emplace_back(err.write.get(), 2);
  PELAB_ASSIGN_OR_RETURN(
      Process process, preloaded != nullptr ? preloaded->Start(options) : Process::Spawn(options));
  return std::unique_ptr<TrainerProcess>(new TrainerProcess(std::move(process), std::move(out.read),
                                                            std::move(err.read), std::move(wake)));
}

TrainerProcess::TrainerProcess(Process process, UniqueFd out, UniqueFd err, UniqueFd wake)
    : process_(std::move(process)),
      out_(std::move(out)),
      err_(std::move(err)),
      wake_(std::move(wake)) {}

void TrainerProcess::Wake() {
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = write(wake_.get(), &one, sizeof one);
}

void TrainerProcess::Stop(absl::Duration grace) {
  {
    MutexLock lock(&mutex_);
    kill_at_ = std::min(kill_at_, SystemClock::Instance().Monotonic() + grace);
  }
  Wake();
}

// Sends the signals that are due. Returns the time until the next one.
absl::Duration TrainerProcess::ObeyStop() {
  absl::Duration kill_at;
  {
    MutexLock lock(&mutex_);
    kill_at = kill_at_;
  }
  if (kill_at == absl::InfiniteDuration() || kill_sent_) return absl::InfiniteDuration();
  if (!term_sent_) {
    process_.Signal(SIGTERM);
    term_sent_ = true;
  }
  const absl::Duration left = kill_at - SystemClock::Instance().Monotonic();
  if (left > absl::ZeroDuration()) return left;
  process_.Signal(SIGKILL);
  kill_sent_ = true;
  return absl::InfiniteDuration();
}

// Stops a program that hangs. Returns the time until the next check.
absl::Duration TrainerProcess::WatchOver(const OutputHandler& handler, bool listening,
                                         bool out_open, absl::Status* stalled) {
  if (term_sent_ || !stalled->ok()) return absl::InfiniteDuration();
  absl::Duration left = absl::InfiniteDuration();
  if (!out_open) {
    const absl::Duration now = SystemClock::Instance().Monotonic();
    closed_at_ = std::min(closed_at_, now);
    left = closed_at_ + kClosedGrace - now;
    if (left <= absl::ZeroDuration()) {
      *stalled = absl::DeadlineExceededError(
          absl::StrCat("the trainer closed its standard output and went on for ",
                       absl::FormatDuration(kClosedGrace), "; it was stopped"));
    }
  } else if (handler.watch) {
    const absl::StatusOr<absl::Duration> next = handler.watch(listening);
    if (next.ok()) {
      left = *next;
    } else {
      *stalled = next.status();
    }
  }
  if (!stalled->ok()) Stop(kStalledGrace);
  return left;
}

ExitStatus TrainerProcess::Run(const OutputHandler& handler, absl::Status* output_error) {
  Lines lines(handler, output_error);
  const auto on_out = [&](absl::string_view bytes) { lines.Feed(bytes); };
  const auto on_err = [&](absl::string_view bytes) {
    if (handler.on_stderr) handler.on_stderr(bytes);
  };
  bool out_open = true;
  bool err_open = true;
  bool listen = true;
  absl::Status stalled;
  while (true) {
    if (lines.broken()) Stop(absl::ZeroDuration());
    const absl::Duration look_again = WatchOver(handler, listen, out_open, &stalled);
    absl::Duration wait = std::min(ObeyStop(), look_again);
    // After a stop little output is left, and the end must not wait for room in the spool.
    listen = term_sent_ || !handler.wants_output || handler.wants_output();
    if (!listen) wait = std::min(wait, kHeldBackPause);
    pollfd fds[] = {{out_open && listen ? out_.get() : -1, POLLIN, 0},
                    {err_open ? err_.get() : -1, POLLIN, 0},
                    {process_.pidfd(), POLLIN, 0},
                    {wake_.get(), POLLIN, 0}};
    const int milliseconds = wait == absl::InfiniteDuration()
                                 ? -1
                                 : static_cast<int>(absl::ToInt64Milliseconds(wait)) + 1;
    if (poll(fds, 4, milliseconds) < 0) continue;
    if (fds[3].revents != 0) {
      std::uint64_t count = 0;
      [[maybe_unused]] const ssize_t got = read(wake_.get(), &count, sizeof count);
    }
    if (fds[0].revents != 0) out_open = ReadSome(out_.get(), on_out) != ReadResult::kEnd;
    if (fds[1].revents != 0) err_open = ReadSome(err_.get(), on_err) != ReadResult::kEnd;
    if (fds[2].revents != 0) break;
  }
  const ExitStatus status = process_.Wait();
  // Read the rest in the pipes, at most their size, without waiting: a process that left the group
  // could hold them open.
  while (out_open && ReadSome(out_.get(), on_out) == ReadResult::kSome) {
  }
  while (err_open && ReadSome(err_.get(), on_err) == ReadResult::kSome) {
  }
  if (!status.signaled) lines.Feed("\n");
  if (output_error->ok()) *output_error = stalled;
  return status;
}

}  // namespace pelab::agent
