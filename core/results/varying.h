// The settings in which the jobs of a list differ, beyond PE, task and seed. As thread-safe as a
// container.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "core/base/short_hashes.h"
#include "core/results/fields.h"
#include "core/results/job_list.h"

namespace pelab::results {

// Chooses the settings that the client's tables and lines about jobs show. It takes the settings of
// TellingColumns, so that a job is labeled like its group in `pelab results`.
class Varying {
 public:
  // Refers to `jobs`, which must outlive it.
  explicit Varying(const JobList& jobs);

  // "protocol", then full names of fields: "model.layers", "train.lr".
  const std::vector<std::string>& fields() const { return fields_; }
  // "0.0003"; "-" if the job has no such field. Hashes are short.
  std::string ValueOf(std::size_t job, const std::string& field) const;
  // "model.layers=4 train.lr=0.0003", without the field `shown`; empty if the jobs differ in
  // nothing else.
  std::string LabelOf(std::size_t job, const std::string& shown = "") const;

 private:
  FieldTable table_;
  std::vector<std::string> fields_;
  ShortHashes hashes_;
};

}  // namespace pelab::results
