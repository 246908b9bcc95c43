// pelab.v1.Transfer: importing jobs that were trained for another database.
#pragma once

#include <atomic>
#include <string>

#include "absl/status/status.h"
#include "pelab/v1/transfer.grpc.pb.h"
#include "server/access/gate.h"
#include "server/service/artifact_collector.h"
#include "server/store/artifact_files.h"
#include "server/store/journal.h"

namespace pelab::service {

class TransferService final : public v1::Transfer::Service {
 public:
  TransferService(std::string database, store::Journal& journal, store::ArtifactFiles& artifacts,
                  ArtifactCollector& collector, access::Gate& gate)
      : database_(std::move(database)),
        journal_(journal),
        artifacts_(artifacts),
        collector_(collector),
        gate_(gate) {}

  grpc::Status CheckImport(grpc::ServerContext* context, const v1::CheckImportRequest* request,
                           v1::CheckImportResponse* response) override;
  grpc::Status ImportJob(grpc::ServerContext* context,
                         grpc::ServerReader<v1::ImportJobPart>* reader,
                         v1::ImportJobResponse* response) override;
  grpc::Status ImportSweep(grpc::ServerContext* context,
                           grpc::ServerReader<v1::ImportSweepPart>* reader,
                           v1::ImportSweepResponse* response) override;

 private:
  absl::Status Take(const grpc::ServerContext& context,
                    grpc::ServerReader<v1::ImportJobPart>& reader, v1::ImportJobResponse& response);
  absl::Status TakeSweep(const grpc::ServerContext& context,
                         grpc::ServerReader<v1::ImportSweepPart>& reader,
                         v1::ImportSweepResponse& response);

  const std::string database_;
  store::Journal& journal_;
  store::ArtifactFiles& artifacts_;
  ArtifactCollector& collector_;
  access::Gate& gate_;
  std::atomic<int> under_way_{0};
};

}  // namespace pelab::service
