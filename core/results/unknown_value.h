// A value in a condition that no job has: the slip that is likely if a condition meets no job.
// The CLI and the JSON API share the sentence.
#pragma once

#include <string>

#include "core/results/fields.h"
#include "core/results/job_list.h"

namespace pelab::results {

// One value of one field, as a condition asks for it.
struct AskedValue {
  std::string field;
  std::string value;
  std::string op = "=";  // or < <= > >=
};

// "no job of the sweep has task = own:tyo; did you mean own:toy? there: own:toy, own:other"; after
// < <= > >= the values there are "0.31 to 0.97".
// `jobs` are those that were looked at, `table` has their fields, and `whose` is " of the sweep"
// or empty. The sentence is empty if no job has any value of the field. Pure: thread-safe.
std::string UnknownValueSentence(const JobList& jobs, const FieldTable& table,
                                 const AskedValue& asked, const std::string& whose);

}  // namespace pelab::results
