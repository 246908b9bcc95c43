// One run of a program: its standard output line by line, its standard error as bytes, and its end.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "core/base/mutex.h"
#include "core/base/process.h"
#include "core/base/unique_fd.h"

namespace pelab::agent {

// What is called while the program runs, on the thread of Run.
struct OutputHandler {
  // A line of standard output. An error ends the program (SIGKILL): its output cannot be trusted
  // any more.
  std::function<absl::Status(absl::string_view line)> on_line;
  std::function<void(absl::string_view bytes)> on_stderr;
  // False: standard output is not read for now, so that the program waits once the pipe is full.
  // Null: always true.
  std::function<bool()> wants_output;
  // Called now and then, at most as far apart as it last answered; `listening`: standard output is
  // being read. An error ends the program (SIGTERM, then SIGKILL) and is its output's. Null: none.
  std::function<absl::StatusOr<absl::Duration>(bool listening)> watch;
};

// Thread-safe: Run is called once, Stop at any time from any thread.
class TrainerProcess {
 public:
  // `options.fds` must leave 1 and 2 free.
  static absl::StatusOr<std::unique_ptr<TrainerProcess>> Start(SpawnOptions options);

  // Until the program has ended and its output is read. Lines are at most kMaxLineBytes; a longer
  // one is an error. What follows the last newline counts as a line unless a signal ended the
  // program. The first error goes to `output_error`. A program that closes its
  // standard output and lives on is ended after a moment.
  ExitStatus Run(const OutputHandler& handler, absl::Status* output_error);

  // SIGTERM now, SIGKILL after `grace`; a later call may shorten the grace, never lengthen it.
  void Stop(absl::Duration grace);

  int pid() const { return process_.pid(); }

 private:
  TrainerProcess(Process process, UniqueFd out, UniqueFd err, UniqueFd wake);
  absl::Duration ObeyStop();
  absl::Duration WatchOver(const OutputHandler& handler, bool listening, bool out_open,
                           absl::Status* stalled);
  void Wake();

  Process process_;  // used by Run's thread only
  UniqueFd out_;
  UniqueFd err_;
  UniqueFd wake_;
  absl::Duration closed_at_ = absl::InfiniteDuration();  // its standard output; monotonic
  bool term_sent_ = false;
  bool kill_sent_ = false;
  Mutex mutex_;
  absl::Duration kill_at_ ABSL_GUARDED_BY(mutex_) = absl::InfiniteDuration();  // monotonic
};

}  // namespace pelab::agent
