// A job: one decoder, one task, one seed, with every setting resolved. The trainer includes this
// header, so it needs no YAML, no Abseil and no OpenSSL. Pure functions: thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/catalog/catalog.h"
#include "core/experiment/violation.h"

namespace pelab::experiment {

// A job with everything resolved. It holds what determines the computation, and nothing else.
struct Job {
  std::string pe;
  int pe_version = 0;
  std::string task;
  int task_version = 0;
  std::int64_t seed = 0;
  catalog::Values values;  // every field of the model, the training, the PE and the task

  // The value of a field, by full name. A field that this job lacks, or one of another type, is a
  // programming error and throws std::logic_error.
  bool Bool(std::string_view field) const;
  std::int64_t Int(std::string_view field) const;
  double Real(std::string_view field) const;
  const std::string& Choice(std::string_view field) const;
  bool Has(std::string_view set_field, std::string_view choice) const;  // for sets of choices
  const std::vector<std::int64_t>& Ints(std::string_view field) const;  // ascending
  bool HasField(std::string_view field) const;  // whether the field applies to this job
};

// Makes the job of this PE, task and seed: the values of `set` that apply, and the protocol's
// defaults for the rest. The three names must be in the catalog (otherwise std::logic_error).
// Values are not checked; see CheckJob.
Job MakeJob(std::string_view protocol, std::string_view pe, std::string_view task,
            std::int64_t seed, const catalog::Values& set = {});
// Reports every value outside its range. If all are in range, reports every constraint that does
// not hold. Empty for a job that may run.
std::vector<Violation> CheckJob(const Job& job);
// Whether task.scored_classes leaves examples out that the job can have: those of class 0.
bool LeavesZeroOut(const Job& job);
// The number of classes that the job's examples can have and are scored on, at least 1. Classes
// that task.scored_classes leaves out and classes that no label has do not count.
std::int64_t ScoredClasses(const Job& job);
// The test accuracy of guessing: 1 / ScoredClasses, or what a file of data says of its test set.
double ChanceAccuracy(const Job& job);
// "distance"; for data from a file "own:parity" or "own:parity(test=long)": the name that the file
// gives itself, and its test set if that is not `test`.
std::string TaskLabel(const Job& job);
// The task's name in its label: "own".
std::string_view TaskOfLabel(std::string_view label);
// The job's values together with its coordinates "pe", "task" and "seed", in the form that the
// catalog's functions take.
catalog::Values WithCoordinates(const Job& job);

}  // namespace pelab::experiment
