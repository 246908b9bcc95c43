// The settings in which jobs differ, as columns of tables about jobs. Not thread-safe.
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
  // A column each; where they are more, one column "settings" with all of them.
  static constexpr std::size_t kMostColumns = 3;

  // Refers to `jobs`, which has to stay. `shown`: a field that the table has a column for.
  explicit VaryingColumns(const results::JobList& jobs, const std::string& shown = "");

  void AddTo(std::vector<render::Column>& columns) const;
  // Of the list's job of that index.
  void AddCells(std::size_t job, std::vector<std::string>& cells) const;

 private:
  results::Varying varying_;
  std::vector<std::string> fields_;
};

}  // namespace pelab::client
