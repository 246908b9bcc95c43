// Mean curves over several seeds. Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/results/cells.h"
#include "pelab/v1/results.pb.h"

namespace pelab::results {

// The columns of a curve row that MeanCurves accepts as a metric.
const std::vector<std::string>& CurveMetrics();

struct CurvePoint {
  int epoch = 0;
  double mean = 0;
  // Half the 95 % interval of the mean by Student's t; only for two or more seeds.
  std::optional<double> half_width;
};

struct MeanCurve {
  std::size_t seeds = 0;  // seeds that count and have begun
  std::vector<CurvePoint> points;
};

// The mean over the seeds of each group. Seeds that have not begun are left out. A curve ends at
// the last epoch that all its other seeds have reached. Seeds that failed or were cancelled do not
// count, because the curve would never get beyond their last epochs. If a group has no other seeds,
// they do count. Memory: one number per epoch and job.
class MeanCurves {
 public:
  // `metric` is one of CurveMetrics().
  MeanCurves(const CellTable& cells, const std::string& metric);
  // Adds rows, sorted by job and epoch; ignores jobs that are in no group.
  template <typename Rows>
  void Add(const Rows& rows) {
    for (const v1::CurveRow& row : rows) AddRow(row);
  }
  std::vector<MeanCurve> Curves() const;  // by group; without points whose mean is not finite

 private:
  struct Sum {
    std::size_t jobs = 0;                         // jobs that have begun
    std::map<int, std::vector<double>> by_epoch;  // one value per job
  };
  void AddRow(const v1::CurveRow& row);

  double (*value_)(const v1::CurveRow& row);
  std::unordered_map<std::int64_t, std::size_t> cell_of_;  // by job
  std::vector<Sum> sums_;                                  // by group
  std::int64_t job_ = 0;  // job of the last row; sum_ is its group's sum
  Sum* sum_ = nullptr;
};

}  // namespace pelab::results
