// The canonical form of a job: every field resolved, as RFC 8785 JSON (sorted names, shortest
// round-trip numbers). Its SHA-256 is the job's key. The trainer links this reader; it needs no
// YAML, no Abseil and no OpenSSL.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/catalog/catalog.h"

namespace pelab::experiment {

// One thing that is wrong in a document, said so that a person can mend it. `line` and `column`
// count from 1; 0 where the document has no lines (a canonical spec, an override).
struct Violation {
  int line = 0;
  int column = 0;
  std::string path;     // "pe[1]", "model.d_model"
  std::string value;    // as written
  std::string allowed;  // in words; may be empty
  std::string message;  // lower-case, complete: unknown pe "alibbi"; known: absolute, alibi, …
};

// "table1.yaml:3:22: unknown pe …"; the place is left out where line is 0.
std::string Format(const Violation& violation, std::string_view file_name);

// An analysis with all its parameters resolved.
struct Analysis {
  std::string name;
  int version = 0;
  catalog::Values parameters;  // by full name: "head_ablation.method"
};
// With the protocol's default where `set` has no value; the name must be in the catalog.
Analysis MakeAnalysis(std::string_view protocol, std::string_view name,
                      const catalog::Values& set = {});
// RFC 8785 JSON of the parameters alone, without the analysis's name: {"method":"zero",…}.
std::string CanonicalParameters(const Analysis& analysis);

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

// RFC 8785 JSON, one line, no trailing newline. Fields at their legacy value are left out.
std::string ToCanonicalJson(const Job& job);

// What reading a canonical spec gives: the job, or what is wrong with it.
struct CanonicalResult {
  std::optional<Job> job;
  std::vector<Violation> violations;
};
// Strict: every field of the catalog must be there (but those at their legacy value), nothing else
// may be, and every constraint must hold.
CanonicalResult FromCanonicalJson(std::string_view json);

// What `pelab-trainer run --spec` reads and the coordinator sends: {"job": ID, "spec": {…},
// "analyses": [{…}]}; a bare canonical spec is read as a job of the name "job" with no analyses.
struct JobDocument {
  std::string job_id;
  Job job;
  std::vector<Analysis> analyses;
};
struct JobDocumentResult {
  std::optional<JobDocument> document;
  std::vector<Violation> violations;
};
JobDocumentResult FromJobDocument(std::string_view json);
std::string ToAnalysesJson(
    const std::vector<Analysis>& analyses);  // [{"name":…,"version":…,"parameters":{…}}]

}  // namespace pelab::experiment
