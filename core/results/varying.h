// Which settings tell the jobs of a list apart beside their PE, task and seed. As thread-safe as a
// container.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "core/results/fields.h"
#include "core/results/job_list.h"

namespace pelab::results {

// The one place that decides which settings tables and lines about jobs show: those that
// TellingColumns names, so that a job reads as its cell does in `pelab results`.
class Varying {
 public:
  // Refers to `jobs`, which has to stay.
  explicit Varying(const JobList& jobs);

  // "protocol", then full names of fields: "model.layers", "train.lr".
  const std::vector<std::string>& fields() const { return fields_; }
  // "0.0003"; "-" where the job has no such field.
  std::string ValueOf(std::size_t job, const std::string& field) const;
  // "model.layers=4 train.lr=0.0003"; empty where jobs differ in nothing else.
  std::string LabelOf(std::size_t job) const;

 private:
  FieldTable table_;
  std::vector<std::string> fields_;
};

}  // namespace pelab::results
