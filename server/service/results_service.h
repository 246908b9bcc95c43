// pelab.v1.Results: reading what is stored. All of it is core/views; only following a log is here.
#pragma once

#include <atomic>

#include "pelab/v1/results.grpc.pb.h"
#include "server/service/reader_pool.h"

namespace pelab::service {

class ResultsService final : public v1::Results::Service {
 public:
  explicit ResultsService(ReaderPool& readers) : readers_(readers) {}

  grpc::Status ListJobs(grpc::ServerContext* context, const v1::ListJobsRequest* request,
                        v1::ListJobsResponse* response) override;
  grpc::Status ListCurves(grpc::ServerContext* context, const v1::ListCurvesRequest* request,
                          v1::ListCurvesResponse* response) override;
  grpc::Status ListHeadAblations(grpc::ServerContext* context,
                                 const v1::ListHeadAblationsRequest* request,
                                 v1::ListHeadAblationsResponse* response) override;
  grpc::Status ListAttempts(grpc::ServerContext* context, const v1::ListAttemptsRequest* request,
                            v1::ListAttemptsResponse* response) override;
  grpc::Status ListWorkers(grpc::ServerContext* context, const v1::ListWorkersRequest* request,
                           v1::ListWorkersResponse* response) override;
  grpc::Status ReadLog(grpc::ServerContext* context, const v1::ReadLogRequest* request,
                       grpc::ServerWriter<v1::LogPart>* writer) override;

  // Ends those who follow a log.
  void Stop() { stopping_ = true; }

 private:
  absl::Status DoReadLog(grpc::ServerContext& context, const v1::ReadLogRequest& request,
                         grpc::ServerWriter<v1::LogPart>& writer);

  ReaderPool& readers_;
  std::atomic<bool> stopping_{false};
  std::atomic<int> followers_{0};
};

}  // namespace pelab::service
