// The coordinator as the daemon sees it: a stream of messages and a place for files. gRPC
// implements it (MakeFleetClient); nothing else here knows of gRPC.
#pragma once

#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/rpc/address.h"
#include "core/rpc/credentials.h"
#include "pelab/v1/fleet.pb.h"
#include "worker/agent/artifact_transfer.h"

namespace pelab::agent {

// One session's stream. Read, Write and Cancel may be called from three threads at once.
class FleetStream {
 public:
  virtual ~FleetStream() = default;
  // Waits for flow control; false: the stream is broken.
  virtual bool Write(const v1::WorkerMessage& message) = 0;
  // No more will be written.
  virtual void WritesDone() = 0;
  // Waits for a message; false: the stream has ended.
  virtual bool Read(v1::CoordinatorMessage* message) = 0;
  // Breaks the stream: Read and Write return soon.
  virtual void Cancel() = 0;
  // Why it ended; after Read has answered false and no Write is under way.
  virtual absl::Status Finish() = 0;
};

// Thread-safe.
class FleetClient : public ArtifactTransfer {
 public:
  // Returns within half a second; a coordinator that is away shows in the stream.
  virtual std::unique_ptr<FleetStream> OpenSession() = 0;
  // As Put, of a file that this worker has put into the artifact store itself. NOT_FOUND where the
  // coordinator does not see it there.
  virtual absl::Status Announce(const ArtifactFile& file) = 0;
};

absl::StatusOr<std::unique_ptr<FleetClient>> MakeFleetClient(const rpc::Address& address,
                                                             const rpc::ClientSecurity& security);

}  // namespace pelab::agent
