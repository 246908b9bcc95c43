// pelab.v1.Results: reading stored results. The rows come from core/db; following logs and sending
// files are implemented here.
#pragma once

#include <atomic>
#include <functional>
#include <utility>
#include <vector>

#include "core/db/read/reader_pool.h"
#include "pelab/v1/results.grpc.pb.h"
#include "server/sched/scheduler.h"
#include "server/service/admission.h"
#include "server/store/artifact_files.h"

namespace pelab::service {

class ResultsService final : public v1::Results::Service {
 public:
  using WorkerStatuses = std::function<std::vector<sched::WorkerStatus>()>;

  // `workers` returns the current status of all workers. Any thread may call it.
  ResultsService(db::ReaderPool& readers, Admission& admission,
                 const store::ArtifactFiles& artifacts, WorkerStatuses workers)
      : readers_(readers),
        admission_(admission),
        artifacts_(artifacts),
        workers_(std::move(workers)) {}

  grpc::Status ListJobs(grpc::ServerContext* context, const v1::ListJobsRequest* request,
                        v1::ListJobsResponse* response) override;
  grpc::Status ListCurves(grpc::ServerContext* context, const v1::ListCurvesRequest* request,
                          v1::ListCurvesResponse* response) override;
  grpc::Status ListEpochsTo(grpc::ServerContext* context, const v1::ListEpochsToRequest* request,
                            v1::ListEpochsToResponse* response) override;
  grpc::Status ListHeadAblations(grpc::ServerContext* context,
                                 const v1::ListHeadAblationsRequest* request,
                                 v1::ListHeadAblationsResponse* response) override;
  grpc::Status ListDeposits(grpc::ServerContext* context, const v1::ListDepositsRequest* request,
                            v1::ListDepositsResponse* response) override;
  grpc::Status ListAnalyses(grpc::ServerContext* context, const v1::ListAnalysesRequest* request,
                            v1::ListAnalysesResponse* response) override;
  grpc::Status ListArtifacts(grpc::ServerContext* context, const v1::ListArtifactsRequest* request,
                             v1::ListArtifactsResponse* response) override;
  grpc::Status GetArtifact(grpc::ServerContext* context, const v1::GetArtifactRequest* request,
                           grpc::ServerWriter<v1::ArtifactChunk>* writer) override;
  grpc::Status ListAttempts(grpc::ServerContext* context, const v1::ListAttemptsRequest* request,
                            v1::ListAttemptsResponse* response) override;
  grpc::Status ListWorkers(grpc::ServerContext* context, const v1::ListWorkersRequest* request,
                           v1::ListWorkersResponse* response) override;
  grpc::Status ReadLog(grpc::ServerContext* context, const v1::ReadLogRequest* request,
                       grpc::ServerWriter<v1::LogPart>* writer) override;

  // Ends calls that follow a log or fetch a file, with UNAVAILABLE.
  void Stop() { stopping_ = true; }

 private:
  template <typename Request, typename Response>
  grpc::Status List(absl::StatusOr<Response> (db::RowReader::*list)(const Request&),
                    const grpc::ServerContext& context, const Request& request, Response& response);
  absl::Status DoReadLog(grpc::ServerContext& context, const v1::ReadLogRequest& request,
                         grpc::ServerWriter<v1::LogPart>& writer);
  absl::Status SendArtifact(const std::string& sha256,
                            grpc::ServerWriter<v1::ArtifactChunk>& writer) const;

  db::ReaderPool& readers_;
  Admission& admission_;
  const store::ArtifactFiles& artifacts_;
  const WorkerStatuses workers_;
  std::atomic<bool> stopping_{false};
  std::atomic<int> followers_{0};
  std::atomic<int> downloads_{0};
};

}  // namespace pelab::service
