// The canonical form of a job: every field resolved, as RFC 8785 JSON (sorted names, shortest
// round-trip numbers). Its SHA-256 is the job's key (key.h). Pure functions: thread-safe.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/experiment/analysis.h"
#include "core/experiment/job.h"

namespace pelab::experiment {

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

}  // namespace pelab::experiment
