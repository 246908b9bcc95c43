#include "client/command/analysis_plan.h"

#include <algorithm>
#include <cstddef>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>

#include "client/limits.h"
#include "client/options/filter.h"
#include "client/terminal/show.h"
#include "core/base/status.h"
#include "core/base/strings.h"
#include "core/catalog/catalog.h"
#include "core/rpc/sweep_document.h"

namespace pelab::client {
namespace {

constexpr char kFallbackProtocol[] = "clean";

// Checks one --set: the field must be a parameter of one of the requested analyses.
absl::Status CheckParameter(const std::string& field, const std::vector<std::string>& names) {
  std::vector<std::string_view> known;
  for (const catalog::Field& candidate : catalog::Fields()) {
    if (std::find(names.begin(), names.end(), candidate.owner) == names.end()) continue;
    if (candidate.name == field) return absl::OkStatus();
    known.push_back(candidate.name);
  }
  const std::string_view near = catalog::DidYouMean(field, known);
  return absl::InvalidArgumentError(Concat("--set: \"", field, "\" is no parameter of ",
                                           Join(names, ", "), near.empty() ? "" : "; did you mean ",
                                           near, "; known: ", Join(known, ", ")));
}

// A sweep document that asks for the analyses, so that they get the same checks and defaults as in
// any document.
std::string DocumentOf(const std::vector<std::string>& names, const std::string& protocol) {
  return Concat("name: analyze\nprotocol: ", protocol,
                "\npe: nope\ntask: distance\nseed: 0\nanalyses: [", Join(names, ", "), "]\n");
}

std::vector<std::string> Distinct(const std::vector<std::string>& names) {
  std::vector<std::string> distinct;
  for (const std::string& name : names) {
    if (std::find(distinct.begin(), distinct.end(), name) == distinct.end())
      distinct.push_back(name);
  }
  return distinct;
}

bool IsProtocol(const std::string& name) { return catalog::FindProtocol(name) != nullptr; }

std::string ProtocolOf(const v1::JobRow& job, const std::string& of_sweep,
                       const AnalysisWords& words) {
  if (!words.protocol.empty()) return words.protocol;
  if (IsProtocol(job.protocol())) return job.protocol();
  return IsProtocol(of_sweep) ? of_sweep : kFallbackProtocol;
}

// The protocol that the sweep's document names; of several, a list that is no protocol.
std::string ProtocolOfDocument(const v1::Sweep& row) {
  const auto sweep = rpc::ParseSweepDocument(row.document(), row.overrides());
  return sweep.ok() ? sweep->protocol() : row.protocol();
}

void AddAnalyses(const std::vector<v1::Analysis>& analyses, v1::AnalyzeRequest& request) {
  for (const v1::Analysis& analysis : analyses) *request.add_analyses() = analysis;
}

// One request for the whole sweep if all its jobs get the same analyses; else requests by protocol.
std::vector<v1::AnalyzeRequest> RequestsOf(const AnalysisPlan& plan) {
  std::vector<v1::AnalyzeRequest> requests;
  if (!plan.filter.sweep().empty() && plan.by_protocol.size() == 1) {
    v1::AnalyzeRequest request;
    request.mutable_sweep()->set_sweep(plan.filter.sweep());
    AddAnalyses(plan.by_protocol.begin()->second, request);
    requests.push_back(std::move(request));
    return requests;
  }
  for (const auto& [protocol, analyses] : plan.by_protocol) {
    bool full = true;
    for (const v1::JobRow& job : plan.jobs) {
      if (plan.protocol_of.at(job.job_id()) != protocol) continue;
      if (full) {
        requests.emplace_back();
        AddAnalyses(analyses, requests.back());
      }
      requests.back().mutable_jobs()->add_jobs(Concat(job.job_id()));
      full = requests.back().jobs().jobs_size() == limits::kJobsOfRequest;
    }
  }
  return requests;
}

// The error of the job's newest attempt; empty if it did not fail.
absl::StatusOr<std::string> LastError(DataSource& source, std::int64_t job) {
  v1::JobFilter filter;
  filter.add_jobs(Concat(job));
  PELAB_ASSIGN_OR_RETURN(const auto attempts, source.Attempts(filter));
  const auto newest = std::max_element(
      attempts.begin(), attempts.end(),
      [](const v1::AttemptRow& a, const v1::AttemptRow& b) { return a.number() < b.number(); });
  return newest == attempts.end() ? std::string() : newest->error();
}

}  // namespace

absl::StatusOr<std::vector<v1::Analysis>> ResolveAnalyses(const AnalysisWords& words,
                                                          const std::string& protocol) {
  const std::vector<std::string> names = Distinct(words.names);
  if (names.empty()) return absl::InvalidArgumentError("--analysis: name at least one analysis");
  for (const std::string& name : names) {
    PELAB_RETURN_IF_ERROR(CheckAnalysisName("--analysis", name));
  }
  google::protobuf::RepeatedPtrField<v1::Override> overrides;
  for (const std::string& flag : words.set) {
    PELAB_ASSIGN_OR_RETURN(*overrides.Add(), ParseOverride(flag));
    PELAB_RETURN_IF_ERROR(CheckParameter(overrides.rbegin()->field(), names));
  }
  PELAB_ASSIGN_OR_RETURN(const experiment::Sweep sweep,
                         rpc::ParseSweepDocument(DocumentOf(names, protocol), overrides));
  return rpc::AnalysesOf(sweep);
}

absl::Status CheckAnalysisWords(const AnalysisWords& words) {
  if (!words.protocol.empty() && !IsProtocol(words.protocol)) {
    std::vector<std::string_view> known;
    for (const catalog::Entry& entry : catalog::Protocols()) known.push_back(entry.name);
    return absl::InvalidArgumentError(Concat("--protocol: unknown protocol \"", words.protocol,
                                             "\"; known: ", Join(known, ", ")));
  }
  return ResolveAnalyses(words, kFallbackProtocol).status();
}

const std::vector<v1::Analysis>& AnalysisPlan::Of(std::int64_t job) const {
  return by_protocol.at(protocol_of.at(job));
}

absl::StatusOr<AnalysisPlan> PlanAnalyses(DataSource& source, const std::string& target,
                                          const std::string& sweep, const AnalysisWords& words) {
  PELAB_ASSIGN_OR_RETURN(const Target found, FindTarget(source, target, sweep));
  AnalysisPlan plan;
  plan.title = found.title;
  plan.filter = found.filter;
  std::string of_sweep;
  if (found.is_sweep) {
    PELAB_ASSIGN_OR_RETURN(const v1::Sweep row, source.Sweep(plan.filter.sweep()));
    of_sweep = ProtocolOfDocument(row);
  }
  PELAB_ASSIGN_OR_RETURN(plan.jobs, source.Jobs(plan.filter));
  if (plan.jobs.empty()) {
    return absl::NotFoundError(Concat(plan.title, " has no jobs (yet)"));
  }
  for (const v1::JobRow& job : plan.jobs) {
    const std::string protocol = ProtocolOf(job, of_sweep, words);
    plan.protocol_of[job.job_id()] = protocol;
    if (plan.by_protocol.count(protocol) > 0) continue;
    PELAB_ASSIGN_OR_RETURN(plan.by_protocol[protocol], ResolveAnalyses(words, protocol));
  }
  plan.requests = RequestsOf(plan);
  return plan;
}

absl::StatusOr<v1::AnalyzeResponse> AskForAnalyses(Coordinator& coordinator,
                                                   const AnalysisPlan& plan) {
  v1::AnalyzeResponse sum;
  for (const v1::AnalyzeRequest& request : plan.requests) {
    PELAB_ASSIGN_OR_RETURN(const v1::AnalyzeResponse one, coordinator.Analyze(request));
    sum.set_queued(sum.queued() + one.queued());
    sum.set_stored(sum.stored() + one.stored());
    sum.set_not_possible(sum.not_possible() + one.not_possible());
    sum.set_after_training(sum.after_training() + one.after_training());
    sum.set_not_trained(sum.not_trained() + one.not_trained());
    for (const std::string& reason : one.reasons()) sum.add_reasons(reason);
  }
  return sum;
}

absl::StatusOr<std::vector<LackingJob>> FindLacking(DataSource& source, const AnalysisPlan& plan) {
  using Key = std::tuple<std::int64_t, std::string, int, std::string>;
  std::set<Key> stored;
  PELAB_ASSIGN_OR_RETURN(const auto rows, source.Analyses(plan.filter, ""));
  for (const v1::AnalysisRow& row : rows) {
    stored.emplace(row.job_id(), row.name(), row.version(), row.parameters_json());
  }
  std::vector<LackingJob> lacking;
  for (const v1::JobRow& job : plan.jobs) {
    const auto& wanted = plan.Of(job.job_id());
    const auto has = [&](const v1::Analysis& a) {
      return stored.count({job.job_id(), a.name(), a.version(), a.parameters_json()}) > 0;
    };
    if (std::all_of(wanted.begin(), wanted.end(), has)) continue;
    lacking.push_back({job, ""});
    if (lacking.size() > limits::kErrorsLookedUp) continue;
    PELAB_ASSIGN_OR_RETURN(lacking.back().error, LastError(source, job.job_id()));
  }
  return lacking;
}

}  // namespace pelab::client
