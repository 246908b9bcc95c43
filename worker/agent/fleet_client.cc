#include "worker/agent/fleet_client.h"

#include <fcntl.h>
#include <grpcpp/grpcpp.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/file.h"
#include "core/base/sha256.h"
#include "core/base/status.h"
#include "core/base/unique_fd.h"
#include "core/rpc/channel.h"
#include "core/rpc/status.h"
#include "pelab/v1/fleet.grpc.pb.h"
#include "pelab/v1/results.grpc.pb.h"

namespace pelab::agent {
namespace {

constexpr std::size_t kChunkBytes = 1 << 20;
constexpr std::chrono::milliseconds kConnectTime{400};
// A file gets a minute and a second for every MiB.
constexpr std::chrono::seconds kLeastTransferTime{60};

std::chrono::system_clock::time_point DeadlineFor(std::uint64_t bytes) {
  return std::chrono::system_clock::now() + kLeastTransferTime +
         std::chrono::seconds(bytes / kChunkBytes);
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

// Sends the chunks; an error is this side's (the file), false the other's.
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

// A file that comes: beside its place until it is whole, gone if it never is.
class IncomingFile {
 public:
  explicit IncomingFile(const ArtifactFile& file)
      : file_(file), temporary_(absl::StrCat(file.path, ".part")) {}
  ~IncomingFile() { std::remove(temporary_.c_str()); }
  IncomingFile(const IncomingFile&) = delete;

  absl::Status Open() {
    PELAB_RETURN_IF_ERROR(RemoveAll(temporary_));
    PELAB_ASSIGN_OR_RETURN(fd_, OpenForAppend(temporary_));
    return absl::OkStatus();
  }
  absl::Status Write(const std::string& bytes) {
    written_ += bytes.size();
    if (written_ > file_.bytes) return NotWhatWasAsked();
    hash_.Update(bytes);
    return WriteAll(fd_.get(), bytes, temporary_);
  }
  absl::Status Commit() {
    if (written_ != file_.bytes || hash_.FinishHex() != file_.sha256) return NotWhatWasAsked();
    if (fsync(fd_.get()) != 0) return ErrnoStatus(errno, absl::StrCat("cannot sync ", temporary_));
    if (std::rename(temporary_.c_str(), file_.path.c_str()) != 0) {
      return ErrnoStatus(errno, absl::StrCat("cannot rename to ", file_.path));
    }
    return FsyncDirectory(DirectoryOf(file_.path));
  }

 private:
  absl::Status NotWhatWasAsked() const {
    return absl::DataLossError(absl::StrCat("the coordinator sent ", written_,
                                            " bytes that are not the ", file_.bytes,
                                            " bytes with sha256 ", file_.sha256));
  }

  const ArtifactFile& file_;
  const std::string temporary_;
  UniqueFd fd_;
  Sha256 hash_;
  std::uint64_t written_ = 0;
};

class GrpcFleetClient final : public FleetClient {
 public:
  explicit GrpcFleetClient(const std::shared_ptr<grpc::Channel>& channel)
      : channel_(channel),
        stub_(v1::Fleet::NewStub(channel)),
        results_(v1::Results::NewStub(channel)) {}

  std::unique_ptr<FleetStream> OpenSession() override {
    // A channel that has just failed refuses calls until it has tried again; let it try now.
    channel_->WaitForConnected(std::chrono::system_clock::now() + kConnectTime);
    return std::make_unique<GrpcFleetStream>(stub_.get());
  }

  absl::Status Put(const ArtifactFile& file, const std::function<bool()>& give_up) override {
    UniqueFd fd(open(file.path.c_str(), O_RDONLY | O_CLOEXEC));
    // FAILED_PRECONDITION: trying again would not bring it back.
    if (!fd)
      return absl::FailedPreconditionError(
          ErrnoStatus(errno, absl::StrCat("cannot open ", file.path)).message());
    grpc::ClientContext context;
    context.set_deadline(DeadlineFor(file.bytes));
    v1::PutArtifactResponse response;
    const auto writer = stub_->PutArtifact(&context, &response);
    v1::PutArtifactRequest request;
    request.mutable_header()->set_sha256(file.sha256);
    request.mutable_header()->set_bytes(file.bytes);
    request.mutable_header()->set_attempt_id(file.attempt_id);
    request.mutable_header()->set_token(file.token);
    absl::StatusOr<bool> sent = writer->Write(request);
    if (*sent) sent = SendChunks(fd.get(), file.path, give_up, writer.get());
    if (!sent.ok()) context.TryCancel();
    writer->WritesDone();
    const absl::Status status = rpc::FromGrpc(writer->Finish());
    return sent.ok() ? status : sent.status();
  }

  absl::Status Get(const ArtifactFile& file, const std::function<bool()>& give_up) override {
    IncomingFile incoming(file);
    PELAB_RETURN_IF_ERROR(incoming.Open());
    grpc::ClientContext context;
    context.set_deadline(DeadlineFor(file.bytes));
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
