// Jobs as a source gives them: what the specs of many have in common is there once. Copyable values;
// as thread-safe as a container.
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

  // Takes a page. Rows with their whole spec, as a coordinator gives them that knows no
  // configurations, are of one where they differ in nothing but their seed, like all others.
  void Add(v1::ListJobsResponse page);

  // By job number; their spec_json is empty.
  const std::vector<v1::JobRow>& rows() const { return rows_; }
  auto begin() const { return rows_.begin(); }
  auto end() const { return rows_.end(); }
  std::size_t size() const { return rows_.size(); }
  bool empty() const { return rows_.empty(); }

  // As v1::Configuration::spec_template, of each configuration_id that a row has.
  const Templates& templates() const { return templates_; }
  // The canonical spec of a row of this list; empty where its configuration did not come.
  std::string SpecOf(const v1::JobRow& row) const;

 private:
  void AddRow(v1::JobRow row);

  std::vector<v1::JobRow> rows_;
  Templates templates_;
  std::map<std::string, std::int64_t> own_ids_;  // below 0, of templates that came without one
};

}  // namespace pelab::results
