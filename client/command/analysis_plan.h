// The plan behind `pelab analyze`: the requested analyses, the jobs to analyze, and the jobs that
// still lack results afterwards.
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

// The values of the command's flags, as typed.
struct AnalysisWords {
  std::vector<std::string> names;  // --analysis
  std::vector<std::string> set;    // --set: "head_ablation.method=mean"
  std::string protocol;            // --protocol: its defaults fill the parameters that --set does
                                   // not name; empty: each job's own protocol
};

// Resolves every parameter, as in a sweep document of this protocol. INVALID_ARGUMENT for unknown
// names and wrong values; the message says what is allowed, and wrong values carry violations. Pure
// function: thread-safe.
absl::StatusOr<std::vector<v1::Analysis>> ResolveAnalyses(const AnalysisWords& words,
                                                          const std::string& protocol);
// Makes the same checks when the protocol is not known yet (it uses the defaults of `clean`).
absl::Status CheckAnalysisWords(const AnalysisWords& words);

// The requests to a coordinator, and the jobs that they are about.
struct AnalysisPlan {
  std::string title;     // "job 12", "sweep quick"
  v1::JobFilter filter;  // the jobs
  results::JobList jobs;
  // The analyses for each protocol that supplies defaults.
  std::map<std::string, std::vector<v1::Analysis>> by_protocol;
  std::map<std::int64_t, std::string> protocol_of;  // by job: a key of by_protocol
  std::vector<v1::AnalyzeRequest> requests;

  const std::vector<v1::Analysis>& Of(std::int64_t job) const;
};
// Finds the jobs as FindTarget does (client/terminal/show.h) and resolves their analyses. NOT_FOUND
// if the target has no jobs. Defaults come from words.protocol or, if it is empty, from the job's
// protocol. A job with a custom protocol takes that of the sweep's document if a sweep was named
// and has one protocol, else `clean`.
absl::StatusOr<AnalysisPlan> PlanAnalyses(DataSource& source, const std::string& target,
                                          const std::string& sweep, const AnalysisWords& words);

// Sends the plan's requests one after another and returns the sum of the answers.
absl::StatusOr<v1::AnalyzeResponse> AskForAnalyses(Coordinator& coordinator,
                                                   const AnalysisPlan& plan);

// A job that lacks some of its analyses. The error of its newest attempt is looked up for the first
// 100 such jobs only.
struct LackingJob {
  v1::JobRow job;
  std::string error;  // empty: that attempt did not fail, or it was not looked up
};
absl::StatusOr<std::vector<LackingJob>> FindLacking(DataSource& source, const AnalysisPlan& plan);

}  // namespace pelab::client
