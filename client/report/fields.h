// The fields of jobs as text, and which of them tell jobs apart. Pure functions: thread-safe.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "pelab/v1/results.pb.h"

namespace pelab::client {

using Fields = std::map<std::string, std::string>;  // "train.lr" -> "0.0001"

// Every field of each job's spec, and pe (the label), task, protocol, seed and device. Seeds of
// parts of a job (task.data_seed) that follow the job's own read "seed": replicates differ in them
// too.
std::vector<Fields> FieldsOf(const std::vector<v1::JobRow>& jobs);
// The same with every value as it is stored.
std::vector<Fields> StoredFieldsOf(const std::vector<v1::JobRow>& jobs);

// "-" for a field that is not there.
std::string ValueOf(const Fields& fields, const std::string& name);

// What makes two jobs replicates of each other: everything but the seed and where it ran.
std::string IdentityOf(Fields fields);

// The columns that tell the cells of `all` apart: "pe", "task", then what differs between jobs that
// agree in these. Where the protocol differs, the fields that go with it are left out; of a
// "custom" protocol those that depart from the named one next to it are not.
std::vector<std::string> TellingColumns(const std::vector<Fields>& all);

// The fields that differ within one group of rows, by the same rule, seed and device aside.
std::set<std::string> MixedFields(const std::vector<const Fields*>& rows);

// INVALID_ARGUMENT, with what is known, for a name that no job can have.
absl::Status CheckFieldNames(const std::vector<std::string>& names, const std::string& flag);

}  // namespace pelab::client
