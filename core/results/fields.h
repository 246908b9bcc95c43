// The fields of jobs as text, and the fields in which jobs differ.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "core/results/job_list.h"
#include "pelab/v1/results.pb.h"

namespace pelab::results {

using Fields = std::map<std::string, std::string>;  // "train.lr" -> "0.0001"

// Every field of each job's spec, and pe (the label), task and protocol. Read once for all seeds of
// a configuration. Refers to `jobs`, which must outlive it. Thread-safe after construction.
class FieldTable {
 public:
  explicit FieldTable(const JobList& jobs);

  // All fields except seed and device, which differ between the jobs of a configuration. If the
  // seed of a part (task.data_seed) follows the job's seed, the field has the value "seed" here,
  // since replicates differ in it too. Several jobs may share the returned object.
  const Fields& Of(std::size_t job) const { return *fields_[job]; }
  // Each object once, in the order of its first job.
  const std::vector<const Fields*>& distinct() const { return distinct_; }

  // A field as it is stored, including seed and device; "-" if it is absent.
  std::string StoredValue(std::size_t job, const std::string& name) const;

 private:
  // The jobs that differ only in seed, device and results.
  struct Kind {
    Fields stored;            // kSeedMark if the value equals the job's seed
    std::string rest;         // the identity of the replicates, without the seeds of parts
    bool some_fixed = false;  // a value that follows the seed here is a fixed value in other jobs
  };
  using SeedsOfParts = std::map<std::pair<std::string, std::string>, std::set<std::string>>;

  Kind MakeKind(const JobList& jobs, const v1::JobRow& row) const;
  void FindFixedSeeds();
  bool IsFixed(const Kind& kind, const std::string& name, const std::string& seed) const;
  Fields FieldsOf(const Kind& kind, const std::string& seed) const;

  const std::vector<v1::JobRow>& rows_;
  std::deque<Kind> kinds_;
  std::vector<const Kind*> kind_;  // by job
  SeedsOfParts fixed_;             // by Kind::rest and the part's field
  std::deque<Fields> all_;
  std::vector<const Fields*> fields_;  // by job
  std::vector<const Fields*> distinct_;
};

// The field's value; "-" if the field is absent.
std::string ValueOf(const Fields& fields, const std::string& name);

// The identity that replicates share: everything except the seed, the device and the protocol's
// name.
std::string IdentityOf(Fields fields);

// The columns that tell the groups of `all` apart: "pe", "task", then the fields that differ
// between jobs with the same PE and task. If the protocol differs, the fields that follow from it
// are left out; for a "custom" protocol, the fields that depart from the nearest named protocol are
// kept.
std::vector<std::string> TellingColumns(const std::vector<const Fields*>& all);

// The fields that differ within one group of rows, by the same rule.
std::set<std::string> MixedFields(const std::vector<const Fields*>& rows);

// INVALID_ARGUMENT for a name that no job can have. The message suggests a similar name and refers
// to `pelab catalog field`.
absl::Status CheckFieldNames(const std::vector<std::string>& names);

}  // namespace pelab::results
