// Conditions on cells of a sweep, stored or not. Not thread-safe.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/experiment/sweep.h"

namespace pelab::db {

class SpecFilter {
 public:
  // Takes time in proportion to the number of cells, once.
  explicit SpecFilter(const std::vector<experiment::Cell>& cells);
  ~SpecFilter();
  SpecFilter(const SpecFilter&) = delete;
  SpecFilter& operator=(const SpecFilter&) = delete;

  // Whether conditions may name this field.
  static bool IsField(const std::string& name);

  // The positions of the cells that meet the condition, ascending; all for an empty one. The
  // language is that of where.h, for fields of the spec and for pe, pe_label, task and protocol.
  // INVALID_ARGUMENT for any other field, and for a text that is no condition.
  absl::StatusOr<std::vector<std::size_t>> Matching(const std::string& where);

 private:
  struct Tables;
  std::unique_ptr<Tables> tables_;
};

}  // namespace pelab::db
