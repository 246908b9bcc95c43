// Runs a program: reads its standard output line by line and its standard error as bytes, and waits
// for its end.
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
#include "worker/agent/limits.h"
#include "worker/agent/preloaded_trainer.h"

namespace pelab::agent {

// Callbacks while the program runs, on the thread of Run.
struct OutputHandler {
  // Called for each line of standard output. An error ends the program with SIGKILL: its output
  // cannot be trusted any more.
  std::function<absl::Status(absl::string_view line)> on_line;
  std::function<void(absl::string_view bytes)> on_stderr;
  // Answers whether to read standard output now. While it answers false, the program waits once the
  // pipe is full. Null: always true.
  std::function<bool()> wants_output;
  // Called from time to time; the next call comes at the latest after the time that the last
  // returned. `listening`: standard output is being read. An error ends the program (SIGTERM, then
  // SIGKILL) and becomes Run's `output_error`. Null: none.
  std::function<absl::StatusOr<absl::Duration>(bool listening)> watch;
};

// Thread-safe: call Run once, and Stop at any time from any thread.
class TrainerProcess {
 public:
  // `options.fds` must not use the descriptors 1 and 2. `preloaded` may start the program; null: it
  // is started in the ordinary way.
  static absl::StatusOr<std::unique_ptr<TrainerProcess>> Start(
      SpawnOptions options, PreloadedTrainer* preloaded = nullptr);

  // Runs until the program has ended and its output is read. A line longer than limits::kLineBytes
  // is an error. Bytes after the last newline count as a line, unless a signal ended the program.
  // `output_error` receives the first error. A program that closes its standard output but does not
  // end is stopped after 5 s.
  ExitStatus Run(const OutputHandler& handler, absl::Status* output_error);

  // Sends SIGTERM now and SIGKILL after `grace`. A later call may shorten the grace, never lengthen
  // it.
  void Stop(absl::Duration grace);

  int pid() const { return process_.pid(); }

 private:
  TrainerProcess(Process process, UniqueFd out, UniqueFd err, UniqueFd wake);
  absl::Duration ObeyStop();
  absl::Duration WatchOver(const OutputHandler& handler, bool listening, bool out_open,
                           absl::Status* stalled);
  void Wake();

  Process process_;  // only Run's thread uses it
  UniqueFd out_;
  UniqueFd err_;
  UniqueFd wake_;
  // when standard output was closed; monotonic
  absl::Duration closed_at_ = absl::InfiniteDuration();
  bool term_sent_ = false;
  bool kill_sent_ = false;
  Mutex mutex_;
  absl::Duration kill_at_ ABSL_GUARDED_BY(mutex_) = absl::InfiniteDuration();  // monotonic
};

}  // namespace pelab::agent
