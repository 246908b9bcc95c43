#include "client/terminal/sweep_grid.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "client/limits.h"
#include "core/base/status.h"
#include "core/base/strings.h"
#include "core/results/cells.h"
#include "core/stats/seeds.h"

namespace pelab::client {
namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

render::Grid::Mark MarkOf(v1::JobState state) {
  switch (state) {
    case v1::JOB_STATE_SUCCEEDED:
      return render::Grid::Mark::kSucceeded;
    case v1::JOB_STATE_FAILED:
      return render::Grid::Mark::kFailed;
    case v1::JOB_STATE_CANCELLED:
      return render::Grid::Mark::kCancelled;
    case v1::JOB_STATE_ASSIGNED:
    case v1::JOB_STATE_RUNNING:
      return render::Grid::Mark::kRunning;
    default:
      return render::Grid::Mark::kQueued;
  }
}

std::size_t IndexOf(const std::string& value, std::vector<std::string>& known) {
  const auto found = std::find(known.begin(), known.end(), value);
  const auto index = static_cast<std::size_t>(found - known.begin());
  if (found == known.end()) known.push_back(value);
  return index;
}

}  // namespace

absl::Status SweepGrid::ReadCourses(const results::JobList& jobs) {
  v1::JobFilter filter;
  filter.set_sweep(sweep_);
  const bool first = courses_.empty();
  std::unordered_map<std::int64_t, int> epochs;
  for (const v1::JobRow& job : jobs) {
    epochs[job.job_id()] = job.epochs();
    Course& course = courses_[job.job_id()];
    if (course.epochs_done == job.epochs_done()) continue;
    filter.add_jobs(Concat(job.job_id()));
    course.epochs_done = job.epochs_done();
    course.parts.fill(kNone);
  }
  if (filter.jobs().empty()) return absl::OkStatus();
  if (first || filter.jobs_size() > limits::kCurvesByJob) filter.clear_jobs();
  return source_.ReadCurves(filter, [&](const DataSource::CurvePage& page) {
    for (const v1::CurveRow& row : page) {
      const auto course = courses_.find(row.job_id());
      const int of = epochs[row.job_id()];
      if (course == courses_.end() || row.epoch() < 0 || row.epoch() >= of) continue;
      const auto part =
          static_cast<std::size_t>(row.epoch()) * kParts / static_cast<std::size_t>(of);
      course->second.parts[part] = row.test_accuracy();
    }
    return absl::OkStatus();
  });
}

// For each part, the mean accuracy over the seeds that have reached it. A job with few epochs has
// parts without an epoch; such a part repeats the part before it.
std::vector<double> SweepGrid::MeanCourse(const std::vector<v1::JobRow>& jobs) const {
  std::vector<double> means(kParts, kNone);
  std::vector<std::vector<double>> values(kParts);
  for (const v1::JobRow& job : jobs) {
    const auto course = courses_.find(job.job_id());
    if (course == courses_.end() || course->second.epochs_done == 0) continue;
    const auto& parts = course->second.parts;
    std::size_t end = kParts;
    while (end > 0 && !std::isfinite(parts[end - 1])) --end;
    if (course->second.epochs_done == job.epochs()) end = kParts;
    double last = kNone;
    for (std::size_t part = 0; part < end; ++part) {
      if (std::isfinite(parts[part])) last = parts[part];
      if (std::isfinite(last)) values[part].push_back(last);
    }
  }
  for (std::size_t part = 0; part < kParts; ++part) means[part] = stats::Mean(values[part]);
  return means;
}

render::Grid::Cell SweepGrid::CellOf(std::vector<v1::JobRow> jobs) const {
  std::sort(jobs.begin(), jobs.end(),
            [](const v1::JobRow& a, const v1::JobRow& b) { return a.seed() < b.seed(); });
  render::Grid::Cell cell;
  cell.complete = true;
  for (const v1::JobRow& job : jobs) {
    cell.seeds.push_back(MarkOf(job.state()));
    cell.complete &= job.state() == v1::JOB_STATE_SUCCEEDED;
  }
  // As in results, failed and cancelled jobs do not count.
  std::erase_if(jobs, [](const v1::JobRow& job) {
    return job.state() == v1::JOB_STATE_FAILED || job.state() == v1::JOB_STATE_CANCELLED;
  });
  std::vector<double> accuracies;
  for (const v1::JobRow& job : jobs) {
    if (job.has_test_accuracy()) accuracies.push_back(job.test_accuracy());
  }
  if (!accuracies.empty()) cell.accuracy = stats::Mean(accuracies);
  cell.curve = MeanCourse(jobs);
  return cell;
}

absl::StatusOr<render::Grid> SweepGrid::Look() {
  v1::JobFilter filter;
  filter.set_sweep(sweep_);
  PELAB_ASSIGN_OR_RETURN(jobs_, source_.Jobs(filter));
  PELAB_RETURN_IF_ERROR(ReadCourses(jobs_));
  PELAB_ASSIGN_OR_RETURN(const results::CellTable table,
                         results::BuildCells(jobs_, "test_accuracy", {}));
  render::Grid grid;
  std::vector<std::string> labels;
  const auto is_task = [](const std::string& column) { return column == "task"; };
  std::vector<std::string> titles = table.columns;
  std::erase_if(titles, is_task);
  grid.title = Join(titles, " ");
  for (const results::Cell& cell : table.cells) {
    std::vector<std::string> names;
    std::string task;
    for (std::size_t i = 0; i < table.columns.size(); ++i) {
      if (is_task(table.columns[i])) {
        task = cell.shown[i];
      } else {
        names.push_back(cell.shown[i]);
      }
    }
    const std::string label = Join(names, " ");
    const std::size_t row = IndexOf(label, labels);
    const std::size_t column = IndexOf(task, grid.tasks);
    if (row == grid.rows.size()) grid.rows.push_back({label, {}});
    auto& cells = grid.rows[row].cells;
    if (cells.size() <= column) cells.resize(column + 1);
    cells[column] = CellOf(cell.jobs);
  }
  for (render::Grid::Row& row : grid.rows) row.cells.resize(grid.tasks.size());
  return grid;
}

}  // namespace pelab::client
