// Curves of several seeds put together. Not thread-safe.
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

// The columns of a curve row that can be put together.
const std::vector<std::string>& CurveMetrics();

struct CurvePoint {
  int epoch = 0;
  double mean = 0;
  // Half the 95 % interval of the mean by Student's t; from two seeds on.
  std::optional<double> half_width;
};

struct MeanCurve {
  std::size_t seeds = 0;  // that count and have begun
  std::vector<CurvePoint> points;
};

// The mean over the seeds of each cell, as far as every one of them that has begun has come. Seeds
// that failed or were cancelled do not count, for they would hold up the others for ever; of a cell
// that has no others they do. Holds one number for each epoch of each job.
class MeanCurves {
 public:
  // `metric` is one of CurveMetrics().
  MeanCurves(const CellTable& cells, const std::string& metric);
  // Rows by job and epoch; those of jobs that are in no cell are left out.
  template <typename Rows>
  void Add(const Rows& rows) {
    for (const v1::CurveRow& row : rows) AddRow(row);
  }
  std::vector<MeanCurve> Curves() const;  // by cell; of means that are not finite there is no point

 private:
  struct Sum {
    std::size_t jobs = 0;                         // that have begun
    std::map<int, std::vector<double>> by_epoch;  // a value a job
  };
  void AddRow(const v1::CurveRow& row);

  double (v1::CurveRow::*value_)() const;
  std::unordered_map<std::int64_t, std::size_t> cell_of_;  // by job
  std::vector<Sum> sums_;                                  // by cell
  std::int64_t job_ = 0;                                   // of the last row, and its cell's sum
  Sum* sum_ = nullptr;
};

}  // namespace pelab::results
