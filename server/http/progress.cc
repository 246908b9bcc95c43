#include "server/http/progress.h"

#include <algorithm>

#include "core/base/strings.h"
#include "core/render/text.h"

namespace pelab::http {
namespace {

std::string Count(std::uint64_t number, const std::string& what) {
  return render::Counted(static_cast<std::int64_t>(number), what);
}

}  // namespace

TimeLeft EstimateTimeLeft(std::uint64_t epochs_left, const std::vector<Pace>& running) {
  if (epochs_left == 0) return {0.0, "no epoch is left"};
  if (running.empty()) return {std::nullopt, "no job is running"};
  double rates = 0;  // sum of epochs per second
  std::size_t measured = 0;
  for (const Pace& pace : running) {
    if (pace.seconds <= 0 || pace.epochs <= 0) continue;
    rates += pace.epochs / pace.seconds;
    ++measured;
  }
  if (measured == 0) return {std::nullopt, "no running job has finished an epoch yet"};
  const double rate = rates / static_cast<double>(measured);
  std::string based_on =
      Concat(Count(epochs_left, "epoch"), " left, ", Count(running.size(), "running job"), " at ",
             render::Fixed(rate, rate < 10 ? 2 : 0), " epochs a second each");
  if (measured < running.size()) {
    based_on +=
        Concat(" (by the ", measured, " that ", measured == 1 ? "has" : "have", " finished one)");
  }
  return {static_cast<double>(epochs_left) / (rate * static_cast<double>(running.size())),
          based_on + "; analyses not counted"};
}

render::Json ProgressJson(const v1::Sweep& sweep, std::uint64_t epochs_given_up,
                          const std::vector<Pace>& running) {
  const v1::StateCounts& jobs = sweep.jobs();
  const std::uint64_t ended = jobs.succeeded() + jobs.failed() + jobs.cancelled();
  const std::uint64_t all = ended + jobs.queued() + jobs.assigned() + jobs.running();
  const std::uint64_t gone = std::min(
      epochs_given_up, sweep.epochs_total() - std::min(sweep.epochs_done(), sweep.epochs_total()));
  const std::uint64_t expected = sweep.epochs_total() - gone;
  const std::uint64_t left = expected - std::min(sweep.epochs_done(), expected);
  TimeLeft time = EstimateTimeLeft(left, running);
  if (all > 0 && ended == all) time = {0.0, "every job has ended"};
  const double fraction =
      expected == 0 ? (all > 0 && ended == all ? 1.0 : 0.0)
                    : static_cast<double>(expected - left) / static_cast<double>(expected);
  return {{"jobs", all},
          {"ended", ended},
          {"fraction", fraction},
          {"epochs_left", left},
          {"time_left_seconds", time.seconds ? render::Json(*time.seconds) : render::Json(nullptr)},
          {"based_on", time.based_on}};
}

}  // namespace pelab::http
