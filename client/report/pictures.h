// Tables and pictures of stored results, as text. Pure functions are thread-safe, MeanCurves is not.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "client/render/plot.h"
#include "client/report/cells.h"
#include "pelab/v1/results.pb.h"

namespace pelab::client {

// Seeds collapsed: mean, 95 % interval, n. A cell that lacks seeds is marked, and a line below says
// what that means.
std::string CellTableText(const CellTable& table, const render::Style& style);

// The columns of a curve row that can be plotted.
const std::vector<std::string>& CurveMetrics();

// A series a cell: the mean over its seeds, as far as every one of them that has begun has come.
// Holds one number for each epoch of each job.
class MeanCurves {
 public:
  // `metric` is one of CurveMetrics(). `cells` outlives this.
  MeanCurves(const CellTable& cells, const std::string& metric);
  // Rows by job and epoch; those of jobs that are in no cell are left out.
  template <typename Rows>
  void Add(const Rows& rows) {
    for (const v1::CurveRow& row : rows) AddRow(row);
  }
  std::vector<render::Series> Series() const;

 private:
  struct Sum {
    std::size_t jobs = 0;                         // that have begun
    std::map<int, std::vector<double>> by_epoch;  // a value a job
  };
  void AddRow(const v1::CurveRow& row);

  const CellTable& cells_;
  double (v1::CurveRow::*value_)() const;
  std::unordered_map<std::int64_t, std::size_t> cell_of_;  // by job
  std::vector<Sum> sums_;                                  // by cell
  std::int64_t job_ = 0;                                   // of the last row, and its cell's sum
  Sum* sum_ = nullptr;
};

}  // namespace pelab::client
