// A job: one decoder, one task, one seed, with every setting resolved. The trainer links this
// header; it needs no YAML, no Abseil and no OpenSSL. Pure functions: thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/catalog/catalog.h"
#include "core/experiment/violation.h"

namespace pelab::experiment {

// A job with everything resolved; what is computed and nothing else.
struct Job {
  std::string pe;
  int pe_version = 0;
  std::string task;
  int task_version = 0;
  std::int64_t seed = 0;
  catalog::Values values;  // every field of the model, the training, the PE and the task

  // The value of a field, by full name. Asking for a field that this job does not have, or for
  // another type, is a mistake of the program and throws std::logic_error.
  bool Bool(std::string_view field) const;
  std::int64_t Int(std::string_view field) const;
  double Real(std::string_view field) const;
  const std::string& Choice(std::string_view field) const;
  bool Has(std::string_view set_field, std::string_view choice) const;  // for sets of choices
  const std::vector<std::int64_t>& Ints(std::string_view field) const;  // ascending
  bool HasField(std::string_view field) const;  // whether the field applies to this job
};

// The job of this PE, task and seed with the values of `set` where they apply, and the protocol's
// defaults elsewhere. The three names must be in the catalog (else std::logic_error); values are
// taken as they are, CheckJob judges them.
Job MakeJob(std::string_view protocol, std::string_view pe, std::string_view task,
            std::int64_t seed, const catalog::Values& set = {});
// Every value out of its range, then every constraint that does not hold; empty for a job that may
// run.
std::vector<Violation> CheckJob(const Job& job);
// How many classes the job's examples can have and are scored on; 1 over this is the accuracy of
// guessing. A class that task.scored_classes leaves out does not count, nor does one that no label
// has. At least 1.
std::int64_t ScoredClasses(const Job& job);
// The job's values together with its coordinates "pe", "task" and "seed", as the catalog's
// functions take them.
catalog::Values WithCoordinates(const Job& job);

}  // namespace pelab::experiment
