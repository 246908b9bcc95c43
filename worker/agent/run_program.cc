#include "worker/agent/run_program.h"

#include <memory>
#include <thread>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "core/base/mutex.h"
#include "core/base/status.h"
#include "core/rpc/token_variable.h"
#include "worker/agent/trainer_process.h"

namespace pelab::agent {
namespace {

constexpr std::size_t kStderrTail = 600;

struct Run {
  ProgramOutput output;
  ExitStatus status;
  bool timed_out = false;
  absl::Status malformed;  // why the output was not read to its end
};

absl::StatusOr<Run> RunToEnd(SpawnOptions options, const RunLimits& limits,
                             PreloadedTrainer* preloaded) {
  PELAB_ASSIGN_OR_RETURN(std::unique_ptr<TrainerProcess> process,
                         TrainerProcess::Start(std::move(options), preloaded));
  Run run;
  OutputHandler handler;
  handler.on_line = [&](absl::string_view line) {
    if (run.output.out.size() + line.size() > limits.bytes) {
      return absl::InvalidArgumentError(
          absl::StrCat("it printed more than ", limits.bytes, " bytes"));
    }
    absl::StrAppend(&run.output.out, line, "\n");
    return absl::OkStatus();
  };
  handler.on_stderr = [&](absl::string_view bytes) {
    std::string& err = run.output.err;
    absl::StrAppend(&err, bytes);
    if (err.size() > kStderrTail) err.erase(0, err.size() - kStderrTail);
  };
  Notification ended;
  std::thread watchdog([&] {
    if (ended.WaitFor(limits.timeout)) return;
    run.timed_out = true;
    process->Stop(absl::ZeroDuration());
  });
  run.status = process->Run(handler, &run.malformed);
  ended.Notify();
  watchdog.join();
  return run;
}

}  // namespace

absl::StatusOr<ProgramOutput> RunProgram(SpawnOptions options, absl::string_view what,
                                         const RunLimits& limits, PreloadedTrainer* preloaded) {
  options.unset_env.emplace_back(rpc::kTokenVariable);
  PELAB_ASSIGN_OR_RETURN(Run run, RunToEnd(std::move(options), limits, preloaded));
  if (run.timed_out) {
    return absl::DeadlineExceededError(
        absl::StrCat(what, " did not end within ", absl::FormatDuration(limits.timeout)));
  }
  if (!run.malformed.ok()) return Annotate(run.malformed, what);
  if (!run.status.ok()) {
    const absl::string_view err = absl::StripAsciiWhitespace(run.output.err);
    return absl::FailedPreconditionError(
        absl::StrCat(what, " ", run.status.ToString(), err.empty() ? "" : ": ", err));
  }
  return std::move(run.output);
}

}  // namespace pelab::agent
