// SweepsService: adding analyses to trained jobs.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/base/json_text.h"
#include "core/base/status.h"
#include "core/base/utf8.h"
#include "core/experiment/analysis.h"
#include "core/experiment/canonical_json.h"
#include "core/rpc/status.h"
#include "server/limits.h"
#include "server/service/blocking.h"
#include "server/service/sweeps_service.h"

namespace pelab::service {
namespace {

constexpr int kJobsAtOnce = 200;  // per write; other writes are stored in between

// Puts the analyses into a job document beside a job that is certainly valid. The reader of job
// documents is the only code that knows which analyses are valid.
absl::StatusOr<std::string> AsJobDocument(const v1::AnalyzeRequest& request) {
  std::string analyses;
  for (const v1::Analysis& analysis : request.analyses()) {
    const auto parameters = ParseJson(analysis.parameters_json());
    if (!parameters.is_object()) {
      const std::string why = WhyNotBounded(analysis.parameters_json());
      return absl::InvalidArgumentError(absl::StrCat("parameters_json of analysis \"",
                                                     Shorten(analysis.name(), 80), "\" ",
                                                     why.empty() ? "is not a JSON object" : why));
    }
    absl::StrAppend(&analyses, analyses.empty() ? "" : ",", "{\"name\":",
                    nlohmann::json(analysis.name())
                        .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace),
                    ",\"parameters\":", parameters.dump(), ",\"version\":", analysis.version(),
                    "}");
  }
  const experiment::Job job = experiment::MakeJob("clean", catalog::Pes().front().name,
                                                  catalog::Tasks().front().name, /*seed=*/0);
  return absl::StrCat("{\"analyses\":[", analyses,
                      "],\"job\":\"analyze\",\"spec\":", experiment::ToCanonicalJson(job), "}");
}

}  // namespace

absl::StatusOr<std::vector<store::Analysis>> ReadAnalyses(const v1::AnalyzeRequest& request) {
  if (request.analyses_size() < 1 || request.analyses_size() > limits::kAnalysesOfRequest) {
    return absl::InvalidArgumentError(absl::StrCat(request.analyses_size(),
                                                   " analyses are asked for; allowed: 1 to ",
                                                   limits::kAnalysesOfRequest));
  }
  PELAB_ASSIGN_OR_RETURN(const std::string document, AsJobDocument(request));
  const experiment::JobDocumentResult read = experiment::FromJobDocument(document);
  v1::Violations violations;
  for (const experiment::Violation& violation : read.violations) {
    v1::Violation* out = violations.add_violations();
    out->set_path(violation.path);
    out->set_value(violation.value);
    out->set_allowed(violation.allowed);
    out->set_message(violation.message);
  }
  if (!read.document) return rpc::ViolationsError(violations);
  std::vector<store::Analysis> analyses;
  for (const experiment::Analysis& analysis : read.document->analyses) {
    store::Analysis resolved{analysis.name, analysis.version,
                             experiment::CanonicalParameters(analysis)};
    if (std::find(analyses.begin(), analyses.end(), resolved) == analyses.end()) {
      analyses.push_back(std::move(resolved));
    }
  }
  return analyses;
}

namespace {

absl::Status SetTarget(const v1::AnalyzeRequest& request, db::Reader& reader,
                       v1::ListJobsRequest& jobs, std::int64_t& sweep_id) {
  switch (request.target_case()) {
    case v1::AnalyzeRequest::kSweep: {
      PELAB_ASSIGN_OR_RETURN(const v1::Sweep sweep, reader.GetSweepRow(request.sweep().sweep()));
      sweep_id = sweep.sweep_id();
      jobs.mutable_filter()->set_sweep(absl::StrCat(sweep_id));
      return absl::OkStatus();
    }
    case v1::AnalyzeRequest::kJobs:
      if (request.jobs().jobs_size() < 1 || request.jobs().jobs_size() > limits::kJobsOfRequest) {
        return absl::InvalidArgumentError(absl::StrCat(
            request.jobs().jobs_size(), " jobs are named; allowed: 1 to ", limits::kJobsOfRequest));
      }
      *jobs.mutable_filter()->mutable_jobs() = request.jobs().jobs();
      return absl::OkStatus();
    case v1::AnalyzeRequest::TARGET_NOT_SET:
      break;
  }
  return absl::InvalidArgumentError("a sweep or jobs must be named");
}

void Add(const store::Analyzed& part, v1::AnalyzeResponse& response) {
  response.set_queued(response.queued() + part.queued);
  response.set_stored(response.stored() + part.stored);
  response.set_not_possible(response.not_possible() + part.not_possible);
  response.set_after_training(response.after_training() + part.after_training);
  response.set_not_trained(response.not_trained() + part.not_trained);
  for (const std::string& reason : part.reasons) {
    if (response.reasons_size() < limits::kReasonsOfAnswer) response.add_reasons(reason);
  }
}

}  // namespace

grpc::Status SweepsService::Analyze(grpc::ServerContext* context, const v1::AnalyzeRequest* request,
                                    v1::AnalyzeResponse* response) {
  return rpc::ToGrpc(DoAnalyze(*context, *request, *response));
}

absl::StatusOr<store::Analyzed> SweepsService::Store(store::Analyze write,
                                                     std::optional<store::RecordAct> act) {
  PELAB_ASSIGN_OR_RETURN(
      store::WriteResult result,
      AppendAndWait(
          parts_.writer, std::move(write),
          [this](const store::WriteResult& stored) {
            parts_.executor.Post([this, jobs = std::get<store::Analyzed>(stored).jobs] {
              parts_.scheduler.Expanded(jobs);
            });
          },
          std::move(act)));
  return std::get<store::Analyzed>(std::move(result));
}

// Idempotent for each job: if a call was interrupted, the next call also counts the jobs that the
// first one queued.
absl::Status SweepsService::DoAnalyze(grpc::ServerContext& context,
                                      const v1::AnalyzeRequest& request,
                                      v1::AnalyzeResponse& response) {
  PELAB_ASSIGN_OR_RETURN(const access::Caller caller, parts_.gate.CallerOf(context));
  PELAB_ASSIGN_OR_RETURN(Turns::Turn turn, parts_.admission.Document(context));
  PELAB_ASSIGN_OR_RETURN(const std::vector<store::Analysis> analyses, ReadAnalyses(request));
  std::string target = absl::StrCat(request.jobs().jobs_size(), " jobs");
  if (request.has_sweep()) {
    PELAB_ASSIGN_OR_RETURN(const v1::Sweep sweep, OwnSweep(caller, request.sweep().sweep()));
    target = access::Named(sweep);
  }
  auto act = caller.Act("Sweeps/Analyze", std::move(target));
  PELAB_ASSIGN_OR_RETURN(const auto reader, parts_.readers.Take());
  v1::ListJobsRequest jobs;
  std::int64_t sweep_id = 0;
  PELAB_RETURN_IF_ERROR(SetTarget(request, *reader, jobs, sweep_id));
  jobs.mutable_page()->set_limit(kJobsAtOnce);
  do {
    if (context.IsCancelled()) return absl::CancelledError("the client is gone");
    PELAB_RETURN_IF_ERROR(turn.Yield());
    PELAB_ASSIGN_OR_RETURN(const v1::ListJobsResponse page, reader->ListJobs(jobs));
    store::Analyze write{.jobs = {},
                         .sweep_id = sweep_id,
                         .analyses = analyses,
                         .now = absl::ToUnixMillis(parts_.clock.Wall())};
    for (const v1::JobRow& job : page.jobs()) {
      if (sweep_id == 0) PELAB_RETURN_IF_ERROR(MayChangeJob(caller, job.job_id(), Whose::kAny));
      write.jobs.push_back(job.job_id());
    }
    jobs.mutable_page()->set_after(page.next());
    if (write.jobs.empty()) break;
    PELAB_ASSIGN_OR_RETURN(const store::Analyzed part,
                           Store(std::move(write), std::exchange(act, std::nullopt)));
    Add(part, response);
  } while (!jobs.page().after().empty());
  return absl::OkStatus();
}

}  // namespace pelab::service
