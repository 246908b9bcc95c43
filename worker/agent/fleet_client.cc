#include "worker/agent/fleet_client.h"

#include <grpcpp/grpcpp.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/regular_file.h"
#include "core/base/status.h"
#include "core/base/unique_fd.h"
#include "core/rpc/channel.h"
#include "core/rpc/status.h"
#include "pelab/v1/fleet.grpc.pb.h"
#include "pelab/v1/results.grpc.pb.h"
#include "worker/agent/incoming_file.h"

namespace pelab::agent {
namespace {

constexpr std::size_t kChunkBytes = 1 << 20;
constexpr std::chrono::milliseconds kConnectTime{400};
// The time limit of a file is a minute plus a second for every MiB.
constexpr std::chrono::seconds kLeastTransferTime{60};

std::chrono::system_clock::time_point DeadlineFor(const ArtifactFile& file) {
  const auto bound = std::chrono::system_clock::now() + kLeastTransferTime +
                     std::chrono::seconds(file.bytes / kChunkBytes);
  return file.until == absl::InfiniteFuture() ? bound
                                              : std::min(bound, absl::ToChronoTime(file.until));
}

v1::PutArtifactRequest HeaderOf(const ArtifactFile& file) {
  v1::PutArtifactRequest request;
  request.mutable_header()->set_sha256(file.sha256);
  request.mutable_header()->set_bytes(file.bytes);
  request.mutable_header()->set_attempt_id(file.attempt_id);
  request.mutable_header()->set_token(file.token);
  request.mutable_header()->set_checkpoint(file.checkpoint);
  return request;
}

class GrpcFleetStream final : public FleetStream {
 public:
  explicit GrpcFleetStream(v1::Fleet::Stub* stub) : stream_(stub->Session(&context_)) {}

  bool Write(const v1::WorkerMessage& message) override { return stream_->Write(message); }
  void WritesDone() override { stream_->WritesDone(); }
  bool Read(v1::CoordinatorMessage* message) override { return stream_->Read(message); }
  void Cancel() override { context_.TryCancel(); }
  absl::Status Finish() override { return rpc::FromGrpc(stream_->Finish()); }

 private:
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReaderWriter<v1::WorkerMessage, v1::CoordinatorMessage>> stream_;
};

// Sends the chunks. An error means that the local file failed, false that the other side did.
absl::StatusOr<bool> SendChunks(int fd, const std::string& path,
                                const std::function<bool()>& give_up,
                                grpc::ClientWriter<v1::PutArtifactRequest>* writer) {
  v1::PutArtifactRequest request;
  while (true) {
    if (give_up()) return absl::CancelledError("the upload was given up");
    std::string* chunk = request.mutable_chunk();
    chunk->resize(kChunkBytes);
    const ssize_t got = read(fd, chunk->data(), chunk->size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return ErrnoStatus(errno, absl::StrCat("cannot read ", path));
    if (got == 0) return true;
    chunk->resize(static_cast<std::size_t>(got));
    if (!writer->Write(request)) return false;
  }
}

class GrpcFleetClient final : public FleetClient {
 public:
  explicit GrpcFleetClient(const std::shared_ptr<grpc::Channel>& channel)
      : channel_(channel),
        stub_(v1::Fleet::NewStub(channel)),
        results_(v1::Results::NewStub(channel)) {}

  std::unique_ptr<FleetStream> OpenSession() override {
    // A channel that has just failed refuses calls until it has tried to connect again. Let it try
    // now.
    channel_->WaitForConnected(std::chrono::system_clock::now() + kConnectTime);
    return std::make_unique<GrpcFleetStream>(stub_.get());
  }

  absl::Status Put(const ArtifactFile& file, const std::function<bool()>& give_up) override {
    const absl::StatusOr<UniqueFd> fd = OpenRegularFile(file.path);
    // FAILED_PRECONDITION, because trying again would not bring the file back.
    if (!fd.ok()) return absl::FailedPreconditionError(fd.status().message());
    grpc::ClientContext context;
    context.set_deadline(DeadlineFor(file));
    v1::PutArtifactResponse response;
    const auto writer = stub_->PutArtifact(&context, &response);
    absl::StatusOr<bool> sent = writer->Write(HeaderOf(file));
    if (*sent) sent = SendChunks(fd->get(), file.path, give_up, writer.get());
    if (!sent.ok()) context.TryCancel();
    writer->WritesDone();
    const absl::Status status = rpc::FromGrpc(writer->Finish());
    return sent.ok() ? status : sent.status();
  }

  absl::Status Announce(const ArtifactFile& file) override {
    grpc::ClientContext context;
    context.set_deadline(DeadlineFor(file));
    v1::PutArtifactResponse response;
    const auto writer = stub_->PutArtifact(&context, &response);
    v1::PutArtifactRequest request = HeaderOf(file);
    request.mutable_header()->set_in_store(true);
    writer->Write(request);
    writer->WritesDone();
    return rpc::FromGrpc(writer->Finish());
  }

  absl::Status Get(const ArtifactFile& file, const std::function<bool()>& give_up) override {
    IncomingFile incoming(file, file.path, absl::StrCat(file.path, ".part"), "the coordinator");
    PELAB_RETURN_IF_ERROR(incoming.Open());
    grpc::ClientContext context;
    context.set_deadline(DeadlineFor(file));
    v1::GetArtifactRequest request;
    request.set_sha256(file.sha256);
    const auto reader = results_->GetArtifact(&context, request);
    absl::Status here;
    v1::ArtifactChunk chunk;
    while (here.ok() && reader->Read(&chunk)) {
      here = give_up() ? absl::CancelledError("the download was given up")
                       : incoming.Write(chunk.data());
    }
    if (!here.ok()) context.TryCancel();
    const absl::Status there = rpc::FromGrpc(reader->Finish());
    PELAB_RETURN_IF_ERROR(here);
    PELAB_RETURN_IF_ERROR(there);
    return incoming.Commit();
  }

 private:
  const std::shared_ptr<grpc::Channel> channel_;
  const std::unique_ptr<v1::Fleet::Stub> stub_;
  const std::unique_ptr<v1::Results::Stub> results_;
};

}  // namespace

bool IsWorthRetrying(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kDeadlineExceeded:
    case absl::StatusCode::kCancelled:
    case absl::StatusCode::kAborted:
    case absl::StatusCode::kUnknown:
    case absl::StatusCode::kInternal:
      return true;
    default:
      return false;
  }
}

absl::StatusOr<std::unique_ptr<FleetClient>> MakeFleetClient(const rpc::Address& address,
                                                             const rpc::ClientSecurity& security) {
  PELAB_ASSIGN_OR_RETURN(const auto channel, rpc::CreateChannel(address, security));
  return std::unique_ptr<FleetClient>(new GrpcFleetClient(channel));
}

}  // namespace pelab::agent
