#include "client/embedded/runner.h"

#include <cstdint>

#include "absl/time/clock.h"
#include "client/limits.h"
#include "client/options/repeat_command.h"
#include "client/terminal/run_report.h"
#include "client/terminal/watch.h"
#include "core/base/ids.h"
#include "core/base/status.h"
#include "core/base/strings.h"
#include "core/render/text.h"

namespace pelab::client {
namespace {

std::uint64_t Pending(const v1::Sweep& sweep) {
  return sweep.jobs().queued() + sweep.jobs().assigned() + sweep.jobs().running();
}

// One run of the command.
class Runner final : public EmbeddedSession {
 public:
  Runner(const Context& context, const Document& document, const RunOptions& options)
      : EmbeddedSession(context, options.worker),
        document_(document),
        options_(options),
        token_(RandomUuid()) {}

 protected:
  absl::StatusOr<int> Work(Coordinator& coordinator) override {
    PELAB_ASSIGN_OR_RETURN(const v1::Sweep submitted, Submit(coordinator));
    if (Pending(submitted) > 0) PELAB_RETURN_IF_ERROR(EnsureWorker());
    PELAB_ASSIGN_OR_RETURN(const v1::Sweep end, Watch(coordinator, submitted));
    if (end.state() == v1::SWEEP_STATE_EXPANDING || Pending(end) > 0) {
      return absl::InternalError(
          "the coordinator stopped reporting before every job had ended; run it again");
    }
    PELAB_RETURN_IF_ERROR(ReportRun(context(), coordinator, end));
    Stop();
    return ExitCodeOf(end);
  }

  std::string GoOnHint() const override {
    v1::Sweep sweep;  // as it was submitted
    sweep.set_file_name(document_.file_name);
    *sweep.mutable_overrides() = document_.overrides;
    return Concat("go on with: ", RunCommand(sweep), " --db ",
                  ShellWord(context().options.database));
  }
  std::string JoinedHint() const override {
    return Concat("the sweep goes on where it was joined; stop it with: pelab cancel ",
                  sweep_.sweep_id(), " --db ", context().options.database);
  }

 private:
  // Submits the sweep and waits until it is expanded, so that its counts are known. The client
  // token makes a repeated submission harmless.
  absl::StatusOr<v1::Sweep> Submit(Coordinator& coordinator) {
    PELAB_RETURN_IF_ERROR(SendOwnFiles(document_.own_files, coordinator));
    PELAB_ASSIGN_OR_RETURN(const auto response,
                           coordinator.Submit(SubmitRequestOf(document_, token_, options_.submit)));
    for (;;) {
      PELAB_ASSIGN_OR_RETURN(v1::Sweep sweep, coordinator.Sweep(Concat(response.sweep_id())));
      if (sweep.state() != v1::SWEEP_STATE_EXPANDING || interrupted()) {
        sweep_ = sweep;
        if (!announced_ && context().output() == Output::kTable) {
          context().out(response.went_on()
                            ? WentOnText(response, sweep)
                            : Concat("sweep ", sweep.sweep_id(), " ", render::Escape(sweep.name()),
                                     ": ", CountsText(sweep.counts()), "\n"));
        }
        announced_ = true;
        return sweep;
      }
      absl::SleepFor(limits::kRunPoll);
    }
  }

  absl::StatusOr<v1::Sweep> Watch(Coordinator& coordinator, const v1::Sweep& submitted) {
    if (Pending(submitted) == 0) return submitted;
    v1::Sweep end;
    PELAB_RETURN_IF_ERROR(Follow([&](Canceller& canceller) -> absl::Status {
      PELAB_ASSIGN_OR_RETURN(end, WatchToEnd(context(), coordinator, Concat(submitted.sweep_id()),
                                             &canceller, /*json_lines=*/false));
      return absl::OkStatus();
    }));
    return end;
  }

  const Document& document_;
  const RunOptions& options_;
  const std::string token_;
  v1::Sweep sweep_;
  bool announced_ = false;
};

}  // namespace

absl::StatusOr<int> RunEmbedded(const Context& context, const Document& document,
                                const RunOptions& options) {
  return Runner(context, document, options).Run();
}

}  // namespace pelab::client
