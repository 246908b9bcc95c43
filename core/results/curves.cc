#include "core/results/curves.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string_view>
#include <utility>

#include "core/stats/seeds.h"

namespace pelab::results {
namespace {

using CurveColumn = double (*)(const v1::CurveRow&);
constexpr std::pair<std::string_view, CurveColumn> kCurveMetrics[] = {
    {"test_accuracy", [](const v1::CurveRow& row) { return row.test_accuracy(); }},
    {"train_accuracy", [](const v1::CurveRow& row) { return row.train_accuracy(); }},
    {"train_eval_accuracy",
     [](const v1::CurveRow& row) {
       return row.has_train_eval_accuracy() ? row.train_eval_accuracy()
                                            : std::numeric_limits<double>::quiet_NaN();
     }},
    {"test_loss", [](const v1::CurveRow& row) { return row.test_loss(); }},
    {"train_loss", [](const v1::CurveRow& row) { return row.train_loss(); }},
    {"learning_rate", [](const v1::CurveRow& row) { return row.learning_rate(); }}};

CurveColumn ColumnOf(const std::string& metric) {
  for (const auto& [name, column] : kCurveMetrics) {
    if (metric == name) return column;
  }
  return ColumnOf("test_accuracy");
}

bool IsGivenUp(const v1::JobRow& job) {
  return job.state() == v1::JOB_STATE_FAILED || job.state() == v1::JOB_STATE_CANCELLED;
}

}  // namespace

const std::vector<std::string>& CurveMetrics() {
  static const auto& names = *new std::vector<std::string>([] {
    std::vector<std::string> all;
    for (const auto& [name, column] : kCurveMetrics) all.emplace_back(name);
    return all;
  }());
  return names;
}

MeanCurves::MeanCurves(const CellTable& cells, const std::string& metric)
    : value_(ColumnOf(metric)), sums_(cells.cells.size()) {
  for (std::size_t c = 0; c < cells.cells.size(); ++c) {
    const auto& jobs = cells.cells[c].jobs;
    const bool all_given_up = std::all_of(jobs.begin(), jobs.end(), IsGivenUp);
    for (const v1::JobRow& job : jobs) {
      if (all_given_up || !IsGivenUp(job)) cell_of_[job.job_id()] = c;
    }
  }
}

void MeanCurves::AddRow(const v1::CurveRow& row) {
  if (row.job_id() != job_) {
    job_ = row.job_id();
    const auto cell = cell_of_.find(job_);
    sum_ = cell == cell_of_.end() ? nullptr : &sums_[cell->second];
    if (sum_ != nullptr) ++sum_->jobs;
  }
  if (sum_ != nullptr) sum_->by_epoch[row.epoch()].push_back(value_(row));
}

std::vector<MeanCurve> MeanCurves::Curves() const {
  std::vector<MeanCurve> curves;
  for (const Sum& sum : sums_) {
    MeanCurve curve{sum.jobs, {}};
    for (const auto& [epoch, values] : sum.by_epoch) {
      if (values.size() != sum.jobs) break;  // a mean over fewer seeds would jump
      const double mean = stats::Mean(values);
      if (!std::isfinite(mean)) continue;
      curve.points.push_back({epoch, mean, stats::IntervalHalfWidth(values)});
    }
    curves.push_back(std::move(curve));
  }
  return curves;
}

}  // namespace pelab::results
