// Which analyses `pelab analyze` asks for, of which jobs, and what is stored of them afterwards.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/source/data_source.h"
#include "pelab/v1/sweeps.pb.h"

namespace pelab::client {

// As on the command line.
struct AnalysisWords {
  std::vector<std::string> names;  // of --analysis
  std::vector<std::string> set;    // of --set: "head_ablation.method=mean"
  std::string protocol;            // of --protocol: whose defaults the other parameters have;
                                   // empty: each job's own
};

// Every parameter resolved, as in a sweep document of this protocol. INVALID_ARGUMENT, with what is
// allowed, for unknown names and wrong values (with violations). Pure.
absl::StatusOr<std::vector<v1::Analysis>> ResolveAnalyses(const AnalysisWords& words,
                                                          const std::string& protocol);
// The same for whatever protocol: only checks.
absl::Status CheckAnalysisWords(const AnalysisWords& words);

// What to ask a coordinator for.
struct AnalysisPlan {
  std::string title;     // "job 12", "sweep quick"
  v1::JobFilter filter;  // the jobs
  results::JobList jobs;
  // A job's analyses, by the protocol whose defaults they have.
  std::map<std::string, std::vector<v1::Analysis>> by_protocol;
  std::map<std::int64_t, std::string> protocol_of;  // by job
  std::vector<v1::AnalyzeRequest> requests;

  const std::vector<v1::Analysis>& Of(std::int64_t job) const;
};
// `target` and `sweep` as in FindTarget (client/terminal/show.h). A job whose protocol is custom has
// the defaults of its sweep's protocol, or, where that is several, of clean.
absl::StatusOr<AnalysisPlan> PlanAnalyses(DataSource& source, const std::string& target,
                                          const std::string& sweep, const AnalysisWords& words);

// Sends the plan's requests; the answers added up.
absl::StatusOr<v1::AnalyzeResponse> AskForAnalyses(Coordinator& coordinator,
                                                   const AnalysisPlan& plan);

// Jobs that lack some of their analyses, and, of the first hundred, what their last attempt said if
// it failed.
struct LackingJob {
  v1::JobRow job;
  std::string error;  // empty: it says nothing
};
absl::StatusOr<std::vector<LackingJob>> FindLacking(DataSource& source, const AnalysisPlan& plan);

}  // namespace pelab::client
