// Settings that differ between jobs, as columns of job tables. Not thread-safe.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "client/terminal/table.h"
#include "core/results/job_list.h"
#include "core/results/varying.h"

namespace pelab::client {

class VaryingColumns {
 public:
  // Up to this many settings have a column each. If there are more, one column "settings" holds
  // all.
  static constexpr std::size_t kMostColumns = 3;

  // `jobs` must outlive this object. `shown`: a field that already has its own column.
  explicit VaryingColumns(const results::JobList& jobs, const std::string& shown = "");

  void AddTo(std::vector<render::Column>& columns) const;
  // The cells for the list's job at this index.
  void AddCells(std::size_t job, std::vector<std::string>& cells) const;

 private:
  results::Varying varying_;
  std::string shown_;
  std::vector<std::string> fields_;
};

}  // namespace pelab::client
