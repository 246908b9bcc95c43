// The coordinator as the daemon sees it: a stream of messages, and a place to store files.
// MakeFleetClient implements it with gRPC; no other file in this folder depends on gRPC.
#pragma once

#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/rpc/address.h"
#include "core/rpc/credentials.h"
#include "pelab/v1/fleet.pb.h"
#include "worker/agent/artifact_transfer.h"

namespace pelab::agent {

// The stream of one session. Read, Write and Cancel may be called at the same time from three
// threads.
class FleetStream {
 public:
  virtual ~FleetStream() = default;
  // Waits for flow control. False: the stream is broken.
  virtual bool Write(const v1::WorkerMessage& message) = 0;
  // Tells the coordinator that nothing more will be written.
  virtual void WritesDone() = 0;
  // Waits for a message. False: the stream has ended.
  virtual bool Read(v1::CoordinatorMessage* message) = 0;
  // Breaks the stream, so that Read and Write return soon.
  virtual void Cancel() = 0;
  // Answers why the stream ended. Call it after Read has answered false, while no Write runs.
  virtual absl::Status Finish() = 0;
};

// Thread-safe.
class FleetClient : public ArtifactTransfer {
 public:
  // Returns within half a second. If the coordinator is away, the stream's calls report it.
  virtual std::unique_ptr<FleetStream> OpenSession() = 0;
  // Like Put, for a file that this worker has already put into the artifact store. NOT_FOUND if the
  // coordinator does not see the file there.
  virtual absl::Status Announce(const ArtifactFile& file) = 0;
};

absl::StatusOr<std::unique_ptr<FleetClient>> MakeFleetClient(const rpc::Address& address,
                                                             const rpc::ClientSecurity& security);

}  // namespace pelab::agent
