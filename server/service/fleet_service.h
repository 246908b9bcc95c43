// pelab.v1.Fleet: worker sessions, and uploads of result files.
#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "core/base/mutex.h"
#include "pelab/v1/fleet.grpc.pb.h"
#include "server/access/gate.h"
#include "server/service/artifact_collector.h"
#include "server/service/worker_stream.h"
#include "server/store/artifact_files.h"

namespace pelab::service {

class FleetService final : public v1::Fleet::WithCallbackMethod_Session<v1::Fleet::Service> {
 public:
  FleetService(FleetContext context, store::ArtifactFiles& artifacts, ArtifactCollector& collector,
               access::Gate& gate)
      : context_(std::move(context)), artifacts_(artifacts), collector_(collector), gate_(gate) {}

  grpc::ServerBidiReactor<v1::WorkerMessage, v1::CoordinatorMessage>* Session(
      grpc::CallbackServerContext* context) override;
  grpc::Status PutArtifact(grpc::ServerContext* context,
                           grpc::ServerReader<v1::PutArtifactRequest>* reader,
                           v1::PutArtifactResponse* response) override;

  grpc::Status DrainWorker(grpc::ServerContext* context, const v1::DrainWorkerRequest* request,
                           v1::DrainWorkerResponse* response) override;

  grpc::Status Demand(grpc::ServerContext* context, const v1::DemandRequest* request,
                      v1::DemandResponse* response) override;

  // Ends every session with UNAVAILABLE, which makes the workers connect again. New sessions end at
  // once.
  void CloseAll();

 private:
  absl::Status Put(grpc::ServerReader<v1::PutArtifactRequest>& reader,
                   v1::PutArtifactResponse& response);
  absl::Status Receive(const v1::ArtifactHeader& header,
                       grpc::ServerReader<v1::PutArtifactRequest>& reader);
  absl::Status Announce(const v1::ArtifactHeader& header);
  enum class Asked { kBefore, kAfter };  // the file's bytes
  absl::Status Record(const v1::ArtifactHeader& header, Asked asked);
  absl::Status DoDemand(const v1::DemandRequest& request, v1::DemandResponse& response);
  absl::Status DoDrain(const grpc::ServerContext& context, const v1::DrainWorkerRequest& request,
                       v1::DrainWorkerResponse& response);

  FleetContext context_;
  std::atomic<int> uploads_{0};
  store::ArtifactFiles& artifacts_;
  ArtifactCollector& collector_;
  access::Gate& gate_;
  Mutex mutex_;
  std::vector<std::weak_ptr<WorkerStream>> streams_ ABSL_GUARDED_BY(mutex_);
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace pelab::service
