// pelab.v1.Sweeps: what people ask for. Unary calls have a thread each; WatchSweep is a reactor.
#pragma once

#include "core/base/clock.h"
#include "core/spec/sweep.h"
#include "pelab/v1/sweeps.grpc.pb.h"
#include "server/sched/scheduler.h"
#include "server/service/expander.h"
#include "server/service/reader_pool.h"
#include "server/service/watch_hub.h"
#include "server/store/writer.h"

namespace pelab::service {

class SweepsService final : public v1::Sweeps::WithCallbackMethod_WatchSweep<v1::Sweeps::Service> {
 public:
  // All of these outlive the service.
  struct Parts {
    const Clock& clock;
    store::Writer& writer;
    sched::Executor& executor;
    sched::Scheduler& scheduler;
    Expander& expander;
    ReaderPool& readers;
  };
  explicit SweepsService(const Parts& parts);

  grpc::Status Preview(grpc::ServerContext* context, const v1::PreviewRequest* request,
                       v1::PreviewResponse* response) override;
  grpc::Status Submit(grpc::ServerContext* context, const v1::SubmitRequest* request,
                      v1::SubmitResponse* response) override;
  grpc::Status ListSweeps(grpc::ServerContext* context, const v1::ListSweepsRequest* request,
                          v1::ListSweepsResponse* response) override;
  grpc::Status GetSweep(grpc::ServerContext* context, const v1::GetSweepRequest* request,
                        v1::Sweep* response) override;
  grpc::Status Cancel(grpc::ServerContext* context, const v1::CancelRequest* request,
                      v1::CancelResponse* response) override;
  grpc::Status Analyze(grpc::ServerContext* context, const v1::AnalyzeRequest* request,
                       v1::AnalyzeResponse* response) override;
  grpc::ServerWriteReactor<v1::SweepUpdate>* WatchSweep(
      grpc::CallbackServerContext* context, const v1::WatchSweepRequest* request) override;

  // Ends the streams.
  void Stop() { hub_.Stop(); }

 private:
  absl::Status DoPreview(grpc::ServerContext& context, const v1::PreviewRequest& request,
                         v1::PreviewResponse& response);
  absl::Status DoSubmit(const v1::SubmitRequest& request, v1::SubmitResponse& response);
  absl::Status DoCancel(const v1::CancelRequest& request, v1::CancelResponse& response);
  // analyze.cc
  absl::Status DoAnalyze(grpc::ServerContext& context, const v1::AnalyzeRequest& request,
                         v1::AnalyzeResponse& response);
  absl::StatusOr<store::Analysed> Store(store::Analyse write);
  absl::StatusOr<store::Write> ToCancel(const v1::CancelRequest& request);
  absl::StatusOr<v1::SweepUpdate> Snapshot(const std::string& sweep);
  void AddWaitingReason(v1::Sweep& sweep);

  Parts parts_;
  WatchHub hub_;
};

// The form in which the database keeps overrides, and back.
std::string OverridesToJson(const google::protobuf::RepeatedPtrField<v1::Override>& overrides);
std::vector<spec::Override> OverridesFromJson(const std::string& json);

}  // namespace pelab::service
