// The curves of a report: means over seeds, epoch by epoch.
#include <algorithm>
#include <cmath>
#include <optional>
#include <span>
#include <vector>

#include "client/limits.h"
#include "client/report/html_data.h"
#include "core/stats/seeds.h"

namespace pelab::client::report {
namespace {

using render::Json;

Json Numbers(const std::vector<double>& values) {
  Json array = Json::array();
  for (const double value : values) array.push_back(std::isfinite(value) ? Json(value) : Json());
  return array;
}

struct Seed {
  const v1::JobRow* job = nullptr;
  const JobCurve* curve = nullptr;
};

std::vector<Seed> SeedsOf(const ReportInput& input, const results::Cell& cell) {
  std::vector<Seed> seeds;
  for (const v1::JobRow& job : cell.jobs) {
    const auto found = input.curves.find(job.job_id());
    if (found != input.curves.end()) seeds.push_back({&job, &found->second});
  }
  return seeds;
}

// The seeds in the drawn mean: those that are done, or all with a curve if none is done.
std::vector<Seed> Counted(const std::vector<Seed>& seeds) {
  std::vector<Seed> done;
  for (const Seed& seed : seeds) {
    if (IsDone(*seed.job)) done.push_back(seed);
  }
  return done.empty() ? seeds : done;
}

// {"mean", "low", "high"} by epoch, for the first `epochs` epochs, which every seed has.
Json Band(const std::vector<Seed>& seeds, std::vector<double> JobCurve::*metric,
          std::size_t epochs) {
  Json mean = Json::array(), low = Json::array(), high = Json::array();
  std::vector<double> values(seeds.size());
  for (std::size_t epoch = 0; epoch < epochs; ++epoch) {
    for (std::size_t s = 0; s < seeds.size(); ++s) values[s] = (seeds[s].curve->*metric)[epoch];
    const double middle = stats::Mean(values);
    const std::optional<double> half = stats::IntervalHalfWidth(values);
    mean.push_back(std::isfinite(middle) ? Json(middle) : Json());
    low.push_back(half ? Json(middle - *half) : Json());
    high.push_back(half ? Json(middle + *half) : Json());
  }
  return {{"mean", std::move(mean)}, {"low", std::move(low)}, {"high", std::move(high)}};
}

Json Series(std::size_t index, const results::Cell& cell, const std::vector<Seed>& seeds,
            bool with_seeds) {
  const std::vector<Seed> counted = Counted(seeds);
  std::size_t epochs = counted.front().curve->test.size();
  for (const Seed& seed : counted) epochs = std::min(epochs, seed.curve->test.size());
  Json singles = Json::array();
  for (const Seed& seed : seeds) {
    if (!with_seeds) break;
    singles.push_back({{"seed", seed.job->seed()},
                       {"job_id", seed.job->job_id()},
                       {"test", Numbers(seed.curve->test)},
                       {"train", Numbers(seed.curve->train)}});
  }
  return {{"cell", index},
          {"epochs", epochs},
          {"n", counted.size()},
          {"of", cell.jobs.size()},
          {"basis", IsDone(*counted.front().job) ? "done" : "begun"},
          {"test", Band(counted, &JobCurve::test, epochs)},
          {"train", Band(counted, &JobCurve::train, epochs)},
          {"seeds", std::move(singles)}};
}

}  // namespace

Json Curves(const ReportInput& input, bool all_seeds) {
  std::size_t points = 0;
  for (const auto& [job, curve] : input.curves) points += curve.test.size() + curve.train.size();
  const bool with_seeds = all_seeds || points <= limits::kReportSeedPoints;
  Json series = Json::array();
  for (std::size_t c = 0; c < input.cells.cells.size(); ++c) {
    const results::Cell& cell = input.cells.cells[c];
    const std::vector<Seed> seeds = SeedsOf(input, cell);
    if (!seeds.empty()) series.push_back(Series(c, cell, seeds, with_seeds));
  }
  return {{"with_seeds", with_seeds}, {"seed_points", points}, {"series", std::move(series)}};
}

}  // namespace pelab::client::report
