// The fields of jobs as text, and which of them tell jobs apart.
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

// Every field of each job's spec, and pe (the label), task and protocol; read once for all seeds of
// a configuration. Refers to `jobs`, which has to stay. Thread-safe once it is made.
class FieldTable {
 public:
  explicit FieldTable(const JobList& jobs);

  // All but seed and device, which are each job's own. Seeds of parts of a job (task.data_seed) that
  // follow the job's read "seed": replicates differ in them too. Jobs may share the object.
  const Fields& Of(std::size_t job) const { return *fields_[job]; }
  // Each object once, in the order of its first job.
  const std::vector<const Fields*>& distinct() const { return distinct_; }

  // A field as it is stored, seed and device among them. "-" where it is not there.
  std::string StoredValue(std::size_t job, const std::string& name) const;

 private:
  // Jobs that differ in seed, device and results alone.
  struct Kind {
    Fields stored;            // kSeedMark where the value is that of the job's seed
    std::string rest;         // what its replicates have in common, whatever their parts' seeds
    bool some_fixed = false;  // the value that follows in one job is fixed in others
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

// "-" for a field that is not there.
std::string ValueOf(const Fields& fields, const std::string& name);

// What makes two jobs replicates of each other: everything but the seed, where it ran and the
// protocol's name.
std::string IdentityOf(Fields fields);

// The columns that tell the cells of `all` apart: "pe", "task", then what differs between jobs that
// agree in these. Where the protocol differs, the fields that go with it are left out; of a
// "custom" protocol those that depart from the named one next to it are not.
std::vector<std::string> TellingColumns(const std::vector<const Fields*>& all);

// The fields that differ within one group of rows, by the same rule.
std::set<std::string> MixedFields(const std::vector<const Fields*>& rows);

// INVALID_ARGUMENT, with what is known, for a name that no job can have.
absl::Status CheckFieldNames(const std::vector<std::string>& names);

}  // namespace pelab::results
