// The canonical form of a job: every field resolved, written as RFC 8785 JSON (sorted names,
// shortest round-trip numbers). Its SHA-256 is the job's key (key.h). Pure functions: thread-safe.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/experiment/analysis.h"
#include "core/experiment/job.h"

namespace pelab::experiment {

// RFC 8785 JSON on one line, without a trailing newline. Omits fields that have their legacy value.
std::string ToCanonicalJson(const Job& job);

// The job of a canonical spec, or the violations found in it.
struct CanonicalResult {
  std::optional<Job> job;
  std::vector<Violation> violations;
};
// Reads strictly: every field that applies must be present (except those at their legacy value),
// nothing else may be present, and every constraint must hold.
CanonicalResult FromCanonicalJson(std::string_view json);

// The document that the coordinator sends and `pelab-trainer run --spec` reads: {"job": ID, "spec":
// {…}, "analyses": [{…}]}. A bare canonical spec is read as a job with the id "job" and without
// analyses.
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
