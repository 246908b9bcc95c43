// A list of jobs that stores the common part of their specs once. Copyable values; as thread-safe
// as a container.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "pelab/v1/results.pb.h"

namespace pelab::results {

class JobList {
 public:
  using Templates = std::map<std::int64_t, std::string>;  // by configuration_id

  JobList() = default;
  explicit JobList(std::vector<v1::JobRow> rows);

  // Adds a page. Rows with a whole spec (from a coordinator that has no configurations) that differ
  // only in their seed are also given a common configuration.
  void Add(v1::ListJobsResponse page);

  // The rows by job number; their spec_json is empty.
  const std::vector<v1::JobRow>& rows() const { return rows_; }
  auto begin() const { return rows_.begin(); }
  auto end() const { return rows_.end(); }
  std::size_t size() const { return rows_.size(); }
  bool empty() const { return rows_.empty(); }

  // The spec_template (v1::Configuration) of each configuration_id that a row has.
  const Templates& templates() const { return templates_; }
  // The canonical spec of a row of this list; empty if its configuration is unknown.
  std::string SpecOf(const v1::JobRow& row) const;

 private:
  void AddRow(v1::JobRow row);

  std::vector<v1::JobRow> rows_;
  Templates templates_;
  std::map<std::string, std::int64_t> own_ids_;  // below 0: for templates without an id
};

}  // namespace pelab::results
