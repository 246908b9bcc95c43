// Conditions on jobs that are stored nowhere, for example the cells of a sweep before it is
// submitted. Not thread-safe.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "pelab/v1/results.pb.h"

namespace pelab::db {

class SpecFilter {
 public:
  // `jobs` need pe, pe_label, task, protocol and spec_json. Takes time in proportion to their
  // number, once.
  explicit SpecFilter(const std::vector<v1::JobRow>& jobs);
  ~SpecFilter();
  SpecFilter(const SpecFilter&) = delete;
  SpecFilter& operator=(const SpecFilter&) = delete;

  // Whether conditions may name this field.
  static bool IsField(const std::string& name);

  // The positions of the jobs that meet the condition, ascending; all for an empty one. The
  // language is that of where.h, for fields of the spec and those four names: INVALID_ARGUMENT
  // for any other field, and for a text that is no condition.
  absl::StatusOr<std::vector<std::size_t>> Matching(const std::string& where);

 private:
  struct Tables;
  std::unique_ptr<Tables> tables_;
};

}  // namespace pelab::db
