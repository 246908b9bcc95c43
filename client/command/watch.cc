#include "client/command/watch.h"

#include <unistd.h>

#include <chrono>
#include <cstdint>

#include "client/command/show.h"
#include "core/render/json.h"
#include "core/results/rows.h"
#include "core/views/text.h"

namespace pelab::client {
namespace {

double Now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

render::Json UpdateJson(const v1::SweepUpdate& update) {
  render::Json running = render::Json::array();
  for (const v1::RunningJob& job : update.running()) {
    running.push_back({{"job_id", job.job_id()},
                       {"pe_label", job.pe_label()},
                       {"task", job.task()},
                       {"seed", job.seed()},
                       {"epochs", job.epochs()},
                       {"epochs_done", job.epochs_done()},
                       {"test_accuracy",
                        job.epochs_done() > 0 ? render::Json(job.test_accuracy()) : render::Json()},
                       {"worker", job.worker()},
                       {"device", job.device()},
                       {"analysing", job.analysing()}});
  }
  return {{"sweep", results::ToJson(update.sweep())}, {"running", running}};
}

std::uint64_t Total(const v1::StateCounts& c) {
  return c.queued() + c.assigned() + c.running() + c.succeeded() + c.failed() + c.cancelled();
}

}  // namespace

render::ProgressState ProgressOf(const v1::SweepUpdate& update) {
  const v1::Sweep& sweep = update.sweep();
  render::ProgressState state;
  state.name = sweep.name();
  state.jobs = Total(sweep.jobs());
  state.succeeded = sweep.jobs().succeeded();
  state.failed = sweep.jobs().failed() + sweep.jobs().cancelled();
  state.running = sweep.jobs().running() + sweep.jobs().assigned();
  state.epochs = sweep.epochs_total();
  state.epochs_done = sweep.epochs_done();
  state.waiting_reason = sweep.waiting_reason();
  for (const v1::RunningJob& job : update.running()) {
    state.running_jobs.push_back({Concat(job.pe_label(), " ", job.task(), " seed ", job.seed()),
                                  job.epochs(), job.epochs_done(), job.test_accuracy(),
                                  Concat(job.worker(), " ", job.device()), job.analysing()});
  }
  return state;
}

absl::StatusOr<v1::Sweep> WatchToEnd(const Context& context, Coordinator& coordinator,
                                     const std::string& sweep, Canceller* canceller,
                                     bool json_lines) {
  render::Style style = context.style;
  const bool terminal = isatty(STDERR_FILENO) != 0;
  if (!terminal) style.color = false;
  render::ProgressView view(style, terminal && style.color,
                            [&](const std::string& text) { context.err(text); });
  v1::Sweep last;
  const absl::Status status = coordinator.Watch(
      sweep,
      [&](const v1::SweepUpdate& update) {
        last = update.sweep();
        if (json_lines) {
          context.out(render::ToJson(UpdateJson(update), /*one_line=*/true));
        } else {
          view.Update(Now(), ProgressOf(update));
        }
      },
      canceller);
  view.Finish();
  if (!status.ok()) return status;
  return last;
}

int ExitCodeOf(const v1::Sweep& sweep) {
  return sweep.jobs().succeeded() == Total(sweep.jobs()) ? kExitOk : kExitIncomplete;
}

std::string EndText(const v1::Sweep& sweep) {
  std::string text =
      Concat("sweep ", sweep.sweep_id(), " ", sweep.name(), ": ", sweep.jobs().succeeded(), " of ",
             Total(sweep.jobs()), " jobs succeeded");
  if (sweep.jobs().failed() > 0) text += Concat(", ", sweep.jobs().failed(), " failed");
  if (sweep.jobs().cancelled() > 0) text += Concat(", ", sweep.jobs().cancelled(), " cancelled");
  return text;
}

}  // namespace pelab::client
