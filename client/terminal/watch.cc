#include "client/terminal/watch.h"

#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <utility>

#include "client/limits.h"
#include "client/terminal/progress.h"
#include "client/terminal/show.h"
#include "client/terminal/sweep_grid.h"
#include "client/terminal/worker_names.h"
#include "core/base/strings.h"
#include "core/render/json.h"
#include "core/render/text.h"
#include "core/results/rows.h"
#include "core/results/varying.h"

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

// The grid next to the progress. It is read at most once per limits::kGridSeconds, since that takes
// several calls.
class WatchedGrid {
 public:
  explicit WatchedGrid(Coordinator& coordinator) : coordinator_(coordinator) {}

  const render::Grid& At(double now, const v1::Sweep& sweep) {
    if (TotalOf(sweep.jobs()) > limits::kGridJobs || now - looked_at_ < limits::kGridSeconds)
      return last_;
    if (!grid_) grid_.emplace(coordinator_, Concat(sweep.sweep_id()));
    looked_at_ = now;
    auto grid = grid_->Look();
    if (!grid.ok()) return last_;  // Watch reports the error
    last_ = *std::move(grid);
    const results::Varying varying(grid_->jobs());
    for (std::size_t i = 0; i < grid_->jobs().size(); ++i) {
      varying_[grid_->jobs().rows()[i].job_id()] = varying.LabelOf(i);
    }
    return last_;
  }
  // The settings in which the job differs from the sweep's others, as of the last look; empty
  // before the first.
  std::string VaryingOf(std::int64_t job) const {
    const auto found = varying_.find(job);
    return found == varying_.end() ? "" : found->second;
  }

 private:
  Coordinator& coordinator_;
  std::optional<SweepGrid> grid_;  // made once the sweep's number is known
  double looked_at_ = -limits::kGridSeconds;
  render::Grid last_;
  std::unordered_map<std::int64_t, std::string> varying_;  // by job
};

render::ProgressState ProgressOf(const v1::SweepUpdate& update, WorkerNames& workers,
                                 const WatchedGrid& grid) {
  const v1::Sweep& sweep = update.sweep();
  render::ProgressState state;
  state.name = sweep.name();
  state.jobs = TotalOf(sweep.jobs());
  state.succeeded = sweep.jobs().succeeded();
  state.failed = sweep.jobs().failed() + sweep.jobs().cancelled();
  state.running = sweep.jobs().running() + sweep.jobs().assigned();
  state.epochs = sweep.epochs_total();
  state.epochs_done = sweep.epochs_done();
  state.waiting_reason = sweep.waiting_reason();
  for (const v1::RunningJob& job : update.running()) {
    const std::string varying = grid.VaryingOf(job.job_id());
    state.running_jobs.push_back({Concat(job.pe_label(), " ", job.task(), " seed ", job.seed(),
                                         varying.empty() ? "" : " ", varying),
                                  job.epochs(), job.epochs_done(), job.test_accuracy(),
                                  Concat(workers.Of(job.worker()), " ", job.device()),
                                  job.analysing()});
  }
  return state;
}

}  // namespace

absl::StatusOr<v1::Sweep> WatchToEnd(const Context& context, Coordinator& coordinator,
                                     const std::string& sweep, Canceller* canceller,
                                     bool json_lines) {
  render::Style style = context.style;
  const bool redraw = isatty(STDERR_FILENO) != 0 && style.color;
  style.color = redraw;
  render::ProgressView view(style, redraw, [&](const std::string& text) { context.err(text); });
  WatchedGrid grid(coordinator);
  WorkerNames workers(coordinator);
  v1::Sweep last;
  const absl::Status status = coordinator.Watch(
      sweep,
      [&](const v1::SweepUpdate& update) {
        last = update.sweep();
        if (json_lines) {
          context.out(render::ToJson(UpdateJson(update), /*one_line=*/true));
        } else {
          render::Grid drawn;
          if (redraw) drawn = grid.At(Now(), update.sweep());
          render::ProgressState state = ProgressOf(update, workers, grid);
          state.grid = std::move(drawn);
          view.Update(Now(), state);
        }
      },
      canceller);
  view.Finish();
  if (!status.ok()) return status;
  return last;
}

int ExitCodeOf(const v1::Sweep& sweep) {
  return sweep.jobs().succeeded() == TotalOf(sweep.jobs()) ? kExitOk : kExitIncomplete;
}

std::string EndText(const v1::Sweep& sweep) {
  std::string text =
      Concat("sweep ", sweep.sweep_id(), " ", render::Escape(sweep.name()), ": ",
             sweep.jobs().succeeded(), " of ", TotalOf(sweep.jobs()), " jobs succeeded");
  if (sweep.diverged() > 0) text += Concat(", ", sweep.diverged(), " of them diverged");
  if (sweep.jobs().failed() > 0) text += Concat(", ", sweep.jobs().failed(), " failed");
  if (sweep.jobs().cancelled() > 0) text += Concat(", ", sweep.jobs().cancelled(), " cancelled");
  return text;
}

}  // namespace pelab::client
