#include "client/source/remote.h"

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <thread>
#include <utility>

#include "absl/strings/match.h"
#include "client/limits.h"
#include "client/source/pages.h"
#include "core/access/too_many_calls.h"
#include "core/base/status.h"
#include "core/base/strings.h"
#include "core/db/read/reader.h"
#include "core/rpc/address.h"
#include "core/rpc/status.h"
#include "pelab/v1/admin.grpc.pb.h"
#include "pelab/v1/allocations.grpc.pb.h"
#include "pelab/v1/claims.grpc.pb.h"
#include "pelab/v1/fleet.grpc.pb.h"
#include "pelab/v1/maintenance.grpc.pb.h"
#include "pelab/v1/results.grpc.pb.h"
#include "pelab/v1/sweeps.grpc.pb.h"
#include "pelab/v1/transfer.grpc.pb.h"

namespace pelab::client {
namespace {

class RemoteCoordinator final : public Coordinator, private db::RowReader {
 public:
  RemoteCoordinator(std::string address, const std::shared_ptr<grpc::Channel>& channel)
      : address_(std::move(address)),
        sweeps_(v1::Sweeps::NewStub(channel)),
        results_(v1::Results::NewStub(channel)),
        maintenance_(v1::Maintenance::NewStub(channel)),
        fleet_(v1::Fleet::NewStub(channel)),
        transfer_(v1::Transfer::NewStub(channel)),
        admin_(v1::Admin::NewStub(channel)),
        claims_(v1::Claims::NewStub(channel)),
        allocations_(v1::Allocations::NewStub(channel)) {}

  absl::Status ReadArtifact(
      const std::string& sha256,
      const std::function<absl::Status(const std::string& piece)>& on_piece) override {
    v1::GetArtifactRequest request;
    request.set_sha256(sha256);
    grpc::ClientContext context;  // no deadline: files have any size; keepalive detects a dead peer
    auto stream = results_->GetArtifact(&context, request);
    return ReadAll<v1::ArtifactChunk>(
        context, *stream, [&](const v1::ArtifactChunk& chunk) { return on_piece(chunk.data()); });
  }
  absl::StatusOr<std::vector<v1::LogPart>> Log(const std::string& job, int attempt) override {
    std::vector<v1::LogPart> parts;
    absl::Status status = ReadLog(
        job, attempt, /*follow=*/false, [&](const v1::LogPart& part) { parts.push_back(part); },
        nullptr);
    if (!status.ok()) return status;
    return parts;
  }

  absl::StatusOr<v1::PreviewResponse> Preview(const v1::PreviewRequest& request) override {
    return Answer<v1::PreviewResponse>(*sweeps_, &v1::Sweeps::Stub::Preview, request);
  }
  absl::StatusOr<v1::SubmitResponse> Submit(const v1::SubmitRequest& request) override {
    return Answer<v1::SubmitResponse>(*sweeps_, &v1::Sweeps::Stub::Submit, request);
  }
  absl::StatusOr<v1::CancelResponse> Cancel(const v1::CancelRequest& request) override {
    return Answer<v1::CancelResponse>(*sweeps_, &v1::Sweeps::Stub::Cancel, request);
  }
  absl::StatusOr<v1::SweepControl> Pause(const v1::PauseRequest& request) override {
    return Answer<v1::SweepControl>(*sweeps_, &v1::Sweeps::Stub::Pause, request);
  }
  absl::StatusOr<v1::SweepControl> Resume(const v1::ResumeRequest& request) override {
    return Answer<v1::SweepControl>(*sweeps_, &v1::Sweeps::Stub::Resume, request);
  }
  absl::StatusOr<v1::SweepControl> SetPriority(const v1::SetPriorityRequest& request) override {
    return Answer<v1::SweepControl>(*sweeps_, &v1::Sweeps::Stub::SetPriority, request);
  }
  absl::StatusOr<v1::SweepControl> Rename(const v1::RenameRequest& request) override {
    return Answer<v1::SweepControl>(*sweeps_, &v1::Sweeps::Stub::Rename, request);
  }
  absl::StatusOr<v1::SweepControl> SetNote(const v1::SetNoteRequest& request) override {
    return Answer<v1::SweepControl>(*sweeps_, &v1::Sweeps::Stub::SetNote, request);
  }
  absl::StatusOr<v1::DeleteResponse> Delete(const v1::DeleteRequest& request) override {
    return Answer<v1::DeleteResponse>(*sweeps_, &v1::Sweeps::Stub::Delete, request);
  }
  absl::StatusOr<v1::RetryResponse> Retry(v1::RetryRequest request) override {
    v1::RetryResponse all;
    Cursors cursors;
    for (;;) {
      v1::RetryResponse response;
      absl::Status status = Call(*sweeps_, &v1::Sweeps::Stub::Retry, request, response);
      if (!status.ok()) return status;
      all.set_queued(all.queued() + response.queued());
      all.set_nothing(all.nothing() + response.nothing());
      all.set_sweep_id(response.sweep_id());
      if (response.next().empty()) return all;
      if (status = cursors.Add(response.next()); !status.ok()) return status;
      request.mutable_sweep()->set_sweep(Concat(response.sweep_id()));
      request.set_after(response.next());
    }
  }
  absl::StatusOr<v1::ExtendResponse> Extend(const v1::ExtendRequest& request) override {
    return Answer<v1::ExtendResponse>(*sweeps_, &v1::Sweeps::Stub::Extend, request);
  }
  absl::StatusOr<v1::DrainWorkerResponse> DrainWorker(
      const v1::DrainWorkerRequest& request) override {
    return Answer<v1::DrainWorkerResponse>(*fleet_, &v1::Fleet::Stub::DrainWorker, request);
  }
  absl::StatusOr<v1::AnalyzeResponse> Analyze(const v1::AnalyzeRequest& request) override {
    return Answer<v1::AnalyzeResponse>(*sweeps_, &v1::Sweeps::Stub::Analyze, request);
  }
  absl::StatusOr<v1::Settlement> RegisterSheet(const v1::RegisterSheetRequest& request) override {
    return Answer<v1::Settlement>(*claims_, &v1::Claims::Stub::RegisterSheet, request);
  }
  absl::StatusOr<v1::Settlement> Advance(const v1::AdvanceRequest& request) override {
    return Answer<v1::Settlement>(*claims_, &v1::Claims::Stub::Advance, request);
  }
  absl::StatusOr<v1::WhoAmIResponse> WhoAmI() override {
    return Answer<v1::WhoAmIResponse>(*admin_, &v1::Admin::Stub::WhoAmI, v1::WhoAmIRequest());
  }
  absl::StatusOr<v1::PrincipalToken> AddPrincipal(const v1::AddPrincipalRequest& request) override {
    return Answer<v1::PrincipalToken>(*admin_, &v1::Admin::Stub::AddPrincipal, request);
  }
  absl::StatusOr<v1::ListPrincipalsResponse> ListPrincipals() override {
    return Answer<v1::ListPrincipalsResponse>(*admin_, &v1::Admin::Stub::ListPrincipals,
                                              v1::ListPrincipalsRequest());
  }
  absl::StatusOr<v1::Principal> ChangePrincipal(
      const v1::ChangePrincipalRequest& request) override {
    return Answer<v1::Principal>(*admin_, &v1::Admin::Stub::ChangePrincipal, request);
  }
  absl::StatusOr<v1::PrincipalToken> RotateToken(const v1::RotateTokenRequest& request) override {
    return Answer<v1::PrincipalToken>(*admin_, &v1::Admin::Stub::RotateToken, request);
  }
  absl::StatusOr<v1::ListQueuesResponse> ListQueues() override {
    return Answer<v1::ListQueuesResponse>(*allocations_, &v1::Allocations::Stub::ListQueues,
                                          v1::ListQueuesRequest());
  }
  absl::StatusOr<v1::QueueRow> PutQueue(const v1::PutQueueRequest& request) override {
    return Answer<v1::QueueRow>(*allocations_, &v1::Allocations::Stub::PutQueue, request);
  }
  absl::StatusOr<v1::QueueRow> RemoveQueue(const v1::RemoveQueueRequest& request) override {
    return Answer<v1::QueueRow>(*allocations_, &v1::Allocations::Stub::RemoveQueue, request);
  }
  absl::StatusOr<v1::QueueRow> PauseQueue(const v1::PauseQueueRequest& request) override {
    return Answer<v1::QueueRow>(*allocations_, &v1::Allocations::Stub::PauseQueue, request);
  }
  absl::StatusOr<v1::QueueRow> ResumeQueue(const v1::ResumeQueueRequest& request) override {
    return Answer<v1::QueueRow>(*allocations_, &v1::Allocations::Stub::ResumeQueue, request);
  }
  absl::StatusOr<v1::DemandResponse> Demand(const v1::DemandRequest& request) override {
    return Answer<v1::DemandResponse>(*fleet_, &v1::Fleet::Stub::Demand, request);
  }
  absl::Status Watch(const std::string& sweep,
                     const std::function<void(const v1::SweepUpdate&)>& on_update,
                     Canceller* canceller) override {
    v1::WatchSweepRequest request;
    request.mutable_sweep()->set_sweep(sweep);
    grpc::ClientContext
        context;  // no deadline: it lasts as long as the sweep; keepalive detects a dead peer
    auto stream = sweeps_->WatchSweep(&context, request);
    return ReadStream<v1::SweepUpdate>(context, *stream, on_update, canceller);
  }
  absl::Status FollowLog(const std::string& job, int attempt,
                         const std::function<void(const v1::LogPart&)>& on_part,
                         Canceller* canceller) override {
    return ReadLog(job, attempt, /*follow=*/true, on_part, canceller);
  }
  absl::Status Backup(const std::function<absl::Status(const v1::BackupPart&)>& on_part) override {
    grpc::ClientContext context;  // no deadline: databases have any size
    auto stream = maintenance_->Backup(&context, v1::BackupRequest());
    return ReadAll<v1::BackupPart>(context, *stream, on_part);
  }
  absl::StatusOr<v1::CheckImportResponse> CheckImport(
      const v1::CheckImportRequest& request) override {
    return Answer<v1::CheckImportResponse>(*transfer_, &v1::Transfer::Stub::CheckImport, request);
  }
  absl::StatusOr<v1::PutFileResponse> PutFile(const Send<v1::PutFileRequest>& send) override {
    grpc::ClientContext context;  // no deadline: the coordinator ends a call that sends nothing
    v1::PutFileResponse response;
    const auto stream = sweeps_->PutFile(&context, &response);
    PELAB_RETURN_IF_ERROR(SendAll<v1::PutFileRequest>(context, *stream, send));
    return response;
  }
  absl::StatusOr<v1::ImportJobResponse> ImportJob(const Send<v1::ImportJobPart>& send) override {
    grpc::ClientContext context;  // no deadline: files have any size
    v1::ImportJobResponse response;
    const auto stream = transfer_->ImportJob(&context, &response);
    PELAB_RETURN_IF_ERROR(SendAll<v1::ImportJobPart>(context, *stream, send));
    return response;
  }
  absl::StatusOr<v1::ImportSweepResponse> ImportSweep(
      const Send<v1::ImportSweepPart>& send) override {
    grpc::ClientContext context;
    v1::ImportSweepResponse response;
    const auto stream = transfer_->ImportSweep(&context, &response);
    PELAB_RETURN_IF_ERROR(SendAll<v1::ImportSweepPart>(context, *stream, send));
    return response;
  }
  std::string Description() const override { return Concat("the coordinator at ", address_); }

 private:
  // The calls of any number of threads may be under way at the same time.
  absl::Status Use(const std::function<absl::Status(db::RowReader&)>& use) override {
    return use(*this);
  }
  // Pages are far below gRPC's limit of a message, for every kind of row.
  int PageRows() const override { return limits::kPageRows; }
  absl::StatusOr<v1::ListJobsResponse> ListJobs(const v1::ListJobsRequest& request) override {
    return Answer<v1::ListJobsResponse>(*results_, &v1::Results::Stub::ListJobs, request);
  }
  absl::StatusOr<v1::ListCurvesResponse> ListCurves(const v1::ListCurvesRequest& request) override {
    return Answer<v1::ListCurvesResponse>(*results_, &v1::Results::Stub::ListCurves, request);
  }
  absl::StatusOr<v1::ListEpochsToResponse> ListEpochsTo(
      const v1::ListEpochsToRequest& request) override {
    return Answer<v1::ListEpochsToResponse>(*results_, &v1::Results::Stub::ListEpochsTo, request);
  }
  absl::StatusOr<v1::ListHeadAblationsResponse> ListHeadAblations(
      const v1::ListHeadAblationsRequest& request) override {
    return Answer<v1::ListHeadAblationsResponse>(*results_, &v1::Results::Stub::ListHeadAblations,
                                                 request);
  }
  absl::StatusOr<v1::ListDepositsResponse> ListDeposits(
      const v1::ListDepositsRequest& request) override {
    return Answer<v1::ListDepositsResponse>(*results_, &v1::Results::Stub::ListDeposits, request);
  }
  absl::StatusOr<v1::ListAnalysesResponse> ListAnalyses(
      const v1::ListAnalysesRequest& request) override {
    return Answer<v1::ListAnalysesResponse>(*results_, &v1::Results::Stub::ListAnalyses, request);
  }
  absl::StatusOr<v1::ListArtifactsResponse> ListArtifacts(
      const v1::ListArtifactsRequest& request) override {
    return Answer<v1::ListArtifactsResponse>(*results_, &v1::Results::Stub::ListArtifacts, request);
  }
  absl::StatusOr<v1::ListAttemptsResponse> ListAttempts(
      const v1::ListAttemptsRequest& request) override {
    return Answer<v1::ListAttemptsResponse>(*results_, &v1::Results::Stub::ListAttempts, request);
  }
  absl::StatusOr<v1::ListWorkersResponse> ListWorkers(
      const v1::ListWorkersRequest& request) override {
    return Answer<v1::ListWorkersResponse>(*results_, &v1::Results::Stub::ListWorkers, request);
  }
  absl::StatusOr<v1::ListSweepsResponse> ListSweeps(const v1::ListSweepsRequest& request) override {
    return Answer<v1::ListSweepsResponse>(*sweeps_, &v1::Sweeps::Stub::ListSweeps, request);
  }
  absl::StatusOr<v1::ListAuditResponse> ListAudit(const v1::ListAuditRequest& request) override {
    return Answer<v1::ListAuditResponse>(*admin_, &v1::Admin::Stub::ListAudit, request);
  }
  absl::StatusOr<v1::ListSheetsResponse> ListSheets(const v1::ListSheetsRequest& request) override {
    return Answer<v1::ListSheetsResponse>(*claims_, &v1::Claims::Stub::ListSheets, request);
  }
  absl::StatusOr<v1::Sheet> GetSheet(const v1::GetSheetRequest& request) override {
    return Answer<v1::Sheet>(*claims_, &v1::Claims::Stub::GetSheet, request);
  }
  absl::StatusOr<v1::ListSheetClaimsResponse> ListSheetClaims(
      const v1::ListSheetClaimsRequest& request) override {
    return Answer<v1::ListSheetClaimsResponse>(*claims_, &v1::Claims::Stub::ListSheetClaims,
                                               request);
  }
  absl::StatusOr<v1::Sweep> GetSweep(const std::string& sweep) override {
    v1::GetSweepRequest request;
    request.mutable_sweep()->set_sweep(sweep);
    return Answer<v1::Sweep>(*sweeps_, &v1::Sweeps::Stub::GetSweep, request);
  }

  // Converts an error. UNAVAILABLE here means a lost connection, so its message names the address.
  absl::Status Convert(const grpc::Status& status) const {
    if (status.error_code() == grpc::StatusCode::UNAVAILABLE) {
      return absl::UnavailableError(Concat("lost the coordinator at ", address_));
    }
    if (status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED) {
      return absl::DeadlineExceededError(Concat(
          "the coordinator at ", address_, " did not answer within ", limits::kCall.count(), " s"));
    }
    if (status.error_code() == grpc::StatusCode::UNIMPLEMENTED) {
      return absl::UnimplementedError(Concat("the coordinator at ", address_,
                                             " does not know this command: it is of an older "
                                             "version"));
    }
    return rpc::FromGrpc(status);
  }

  template <typename Stub, typename Method, typename Request, typename Response>
  absl::Status Call(Stub& stub, Method method, const Request& request, Response& response) {
    const auto deadline = std::chrono::system_clock::now() + limits::kCall;
    for (;;) {
      grpc::ClientContext context;
      context.set_deadline(deadline);
      absl::Status status = Convert((stub.*method)(&context, request, &response));
      // A command that reads many pages may be faster than its principal is allowed to be.
      const bool again = absl::IsResourceExhausted(status) &&
                         absl::StrContains(status.message(), access::kTooManyCalls) &&
                         std::chrono::system_clock::now() + limits::kAfterTooManyCalls < deadline;
      if (!again) return status;
      std::this_thread::sleep_for(limits::kAfterTooManyCalls);
    }
  }
  template <typename Response, typename Stub, typename Method, typename Request>
  absl::StatusOr<Response> Answer(Stub& stub, Method method, const Request& request) {
    Response response;
    absl::Status status = Call(stub, method, request, response);
    if (!status.ok()) return status;
    return response;
  }
  // Converts the end of a stream that this client did not cancel. If the coordinator cancelled it,
  // the principal may not make the call any more, which another call is told with the reason, or
  // this client was too slow.
  absl::Status ConvertEnd(const grpc::Status& status) {
    if (status.error_code() != grpc::StatusCode::CANCELLED) return Convert(status);
    PELAB_RETURN_IF_ERROR(WhoAmI().status());
    return absl::AbortedError(Concat("the coordinator at ", address_, " ended this call"));
  }
  template <typename Message, typename Stream>
  absl::Status ReadStream(grpc::ClientContext& context, Stream& stream,
                          const std::function<void(const Message&)>& on_message,
                          Canceller* canceller) {
    if (canceller != nullptr) canceller->Set([&context] { context.TryCancel(); });
    Message message;
    while (stream.Read(&message)) on_message(message);
    if (canceller != nullptr) canceller->Set(nullptr);
    const grpc::Status status = stream.Finish();
    if (canceller != nullptr && canceller->cancelled()) return absl::CancelledError("stopped");
    return ConvertEnd(status);
  }
  // Reads until the end, or until `on_message` returns an error; returns that error.
  template <typename Message, typename Stream>
  absl::Status ReadAll(grpc::ClientContext& context, Stream& stream,
                       const std::function<absl::Status(const Message&)>& on_message) {
    absl::Status stopped;
    Message message;
    while (stopped.ok() && stream.Read(&message)) stopped = on_message(message);
    if (!stopped.ok()) context.TryCancel();
    const grpc::Status status = stream.Finish();
    return stopped.ok() ? ConvertEnd(status) : stopped;
  }
  // Sends all parts. If the coordinator ends the stream early, its answer is returned.
  template <typename Part, typename Stream>
  absl::Status SendAll(grpc::ClientContext& context, Stream& stream, const Send<Part>& send) {
    const absl::Status broken = absl::UnavailableError("the stream is broken");
    const absl::Status sent =
        send([&](const Part& part) { return stream.Write(part) ? absl::OkStatus() : broken; });
    if (sent.ok()) {
      stream.WritesDone();
    } else if (sent != broken) {
      context.TryCancel();
    }
    const grpc::Status answered = stream.Finish();
    return sent.ok() || sent == broken ? ConvertEnd(answered) : sent;
  }
  absl::Status ReadLog(const std::string& job, int attempt, bool follow,
                       const std::function<void(const v1::LogPart&)>& on_part,
                       Canceller* canceller) {
    v1::ReadLogRequest request;
    request.set_job(job);
    request.set_attempt(attempt);
    request.set_follow(follow);
    grpc::ClientContext context;
    if (!follow) context.set_deadline(std::chrono::system_clock::now() + limits::kCall);
    auto stream = results_->ReadLog(&context, request);
    return ReadStream<v1::LogPart>(context, *stream, on_part, canceller);
  }

  std::string address_;
  std::unique_ptr<v1::Sweeps::Stub> sweeps_;
  std::unique_ptr<v1::Results::Stub> results_;
  std::unique_ptr<v1::Maintenance::Stub> maintenance_;
  std::unique_ptr<v1::Fleet::Stub> fleet_;
  std::unique_ptr<v1::Transfer::Stub> transfer_;
  std::unique_ptr<v1::Admin::Stub> admin_;
  std::unique_ptr<v1::Claims::Stub> claims_;
  std::unique_ptr<v1::Allocations::Stub> allocations_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Coordinator>> ConnectTo(const std::string& address,
                                                       const rpc::ClientSecurity& security,
                                                       absl::Duration timeout,
                                                       rpc::OnRefusal on_refusal) {
  absl::StatusOr<rpc::Address> parsed = rpc::ParseAddress(address);
  if (!parsed.ok()) return parsed.status();
  auto channel = rpc::Connect(*parsed, security, timeout, on_refusal);
  if (!channel.ok()) return channel.status();
  return std::make_unique<RemoteCoordinator>(address, *channel);
}

}  // namespace pelab::client
