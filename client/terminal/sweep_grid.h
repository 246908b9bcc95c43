// The current state of a sweep as a grid. Not thread-safe.
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
  // `source` must outlive this object.
  SweepGrid(DataSource& source, std::string sweep) : source_(source), sweep_(std::move(sweep)) {}

  // Reads the jobs, and the curves of the jobs that advanced since the last call.
  absl::StatusOr<render::Grid> Look();
  // All jobs of the sweep as of the last Look.
  const results::JobList& jobs() const { return jobs_; }

 private:
  static constexpr std::size_t kParts = 8;  // the epochs are divided into this many parts
  // The last test accuracy in each part; NaN in parts without an epoch.
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
