// A sweep as a grid of its cells, as it is now. Not thread-safe.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "absl/status/statusor.h"
#include "client/source/data_source.h"
#include "client/terminal/grid.h"

namespace pelab::client {

class SweepGrid {
 public:
  // Of larger sweeps there is none: it would not fit anywhere.
  static constexpr std::uint64_t kMostJobs = 1000;

  // `source` has to stay.
  SweepGrid(DataSource& source, std::string sweep) : source_(source), sweep_(std::move(sweep)) {}

  // Asks for the jobs, and for the curves of those that came further since the last call.
  absl::StatusOr<render::Grid> Look();
  // All jobs of the sweep, as they were at the last look.
  const results::JobList& jobs() const { return jobs_; }

 private:
  static constexpr std::size_t kParts = 8;  // of the epochs
  // The last test accuracy in each part; NaN in those without an epoch.
  struct Course {
    int epochs_done = 0;
    std::array<double, kParts> parts = {};
  };

  absl::Status ReadCourses(const results::JobList& jobs);
  std::vector<double> MeanCourse(const std::vector<v1::JobRow>& jobs) const;
  render::Grid::Cell CellOf(std::vector<v1::JobRow> jobs) const;

  DataSource& source_;
  const std::string sweep_;
  results::JobList jobs_;
  std::unordered_map<std::int64_t, Course> courses_;  // by job
};

}  // namespace pelab::client
