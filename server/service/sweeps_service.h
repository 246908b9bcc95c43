// pelab.v1.Sweeps: submitting and controlling sweeps. Each unary call has a thread of its own;
// WatchSweep is a reactor.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "core/experiment/sweep.h"
#include "pelab/v1/sweeps.grpc.pb.h"
#include "server/service/sweep_parts.h"
#include "server/service/watch_hub.h"

namespace pelab::service {

// How long one call works on a sweep. After that it returns, reports that more is left, and the
// expander or a further call continues. Clients wait for up to 30 s.
inline constexpr absl::Duration kCallTime = absl::Seconds(10);

class SweepsService final : public v1::Sweeps::WithCallbackMethod_WatchSweep<v1::Sweeps::Service> {
 public:
  explicit SweepsService(const SweepParts& parts);

  grpc::Status Preview(grpc::ServerContext* context, const v1::PreviewRequest* request,
                       v1::PreviewResponse* response) override;
  grpc::Status PutFile(grpc::ServerContext* context, grpc::ServerReader<v1::PutFileRequest>* reader,
                       v1::PutFileResponse* response) override;
  grpc::Status Submit(grpc::ServerContext* context, const v1::SubmitRequest* request,
                      v1::SubmitResponse* response) override;
  grpc::Status ListSweeps(grpc::ServerContext* context, const v1::ListSweepsRequest* request,
                          v1::ListSweepsResponse* response) override;
  grpc::Status GetSweep(grpc::ServerContext* context, const v1::GetSweepRequest* request,
                        v1::Sweep* response) override;
  grpc::Status Cancel(grpc::ServerContext* context, const v1::CancelRequest* request,
                      v1::CancelResponse* response) override;
  grpc::Status Pause(grpc::ServerContext* context, const v1::PauseRequest* request,
                     v1::SweepControl* response) override;
  grpc::Status Resume(grpc::ServerContext* context, const v1::ResumeRequest* request,
                      v1::SweepControl* response) override;
  grpc::Status SetPriority(grpc::ServerContext* context, const v1::SetPriorityRequest* request,
                           v1::SweepControl* response) override;
  grpc::Status Rename(grpc::ServerContext* context, const v1::RenameRequest* request,
                      v1::SweepControl* response) override;
  grpc::Status SetNote(grpc::ServerContext* context, const v1::SetNoteRequest* request,
                       v1::SweepControl* response) override;
  grpc::Status Delete(grpc::ServerContext* context, const v1::DeleteRequest* request,
                      v1::DeleteResponse* response) override;
  grpc::Status Retry(grpc::ServerContext* context, const v1::RetryRequest* request,
                     v1::RetryResponse* response) override;
  grpc::Status Extend(grpc::ServerContext* context, const v1::ExtendRequest* request,
                      v1::ExtendResponse* response) override;
  grpc::Status Analyze(grpc::ServerContext* context, const v1::AnalyzeRequest* request,
                       v1::AnalyzeResponse* response) override;
  grpc::ServerWriteReactor<v1::SweepUpdate>* WatchSweep(
      grpc::CallbackServerContext* context, const v1::WatchSweepRequest* request) override;

  // Ends the streams of WatchSweep.
  void Stop() { hub_.Stop(); }

 private:
  absl::Status DoPreview(grpc::ServerContext& context, const v1::PreviewRequest& request,
                         v1::PreviewResponse& response);
  absl::Status DoSubmit(const grpc::ServerContext& context, const v1::SubmitRequest& request,
                        v1::SubmitResponse& response);
  absl::Status Refused(const access::Caller& caller, const v1::SubmitRequest& request,
                       const store::SweepStored& stored);
  absl::Status ExpandAgain(std::int64_t sweep_id);
  // put_file.cc
  absl::Status DoPutFile(const grpc::ServerContext& context,
                         grpc::ServerReader<v1::PutFileRequest>& reader,
                         v1::PutFileResponse& response);
  absl::Status Receive(const v1::FileHeader& header,
                       grpc::ServerReader<v1::PutFileRequest>& reader);
  // FAILED_PRECONDITION if a file that the overrides declare is not stored. Those that are stored
  // stay for long enough to store a sweep that names them.
  absl::Status KeepFiles(const google::protobuf::RepeatedPtrField<v1::Override>& overrides);
  // analyze.cc
  absl::Status DoAnalyze(grpc::ServerContext& context, const v1::AnalyzeRequest& request,
                         v1::AnalyzeResponse& response);
  absl::StatusOr<store::Analyzed> Store(store::Analyze write, std::optional<store::RecordAct> act);
  // control.cc
  absl::Status DoCancel(const grpc::ServerContext& context, const v1::CancelRequest& request,
                        v1::CancelResponse& response);
  absl::Status DoControl(const grpc::ServerContext& context, absl::string_view method,
                         const std::string& sweep, store::ControlSweep write,
                         v1::SweepControl& response);
  absl::Status DoRetry(const grpc::ServerContext& context, const v1::RetryRequest& request,
                       v1::RetryResponse& response);
  absl::StatusOr<std::int64_t> FindJob(const std::string& job);
  // The sweep of that name or number, if the caller may change it; counts are not read.
  absl::StatusOr<v1::Sweep> OwnSweep(const access::Caller& caller, const std::string& sweep);
  // PERMISSION_DENIED unless the caller may change the job: one of the sweeps that have it is the
  // caller's, or (kAll) every one that claims it.
  enum class Whose { kAny, kAll };
  absl::Status MayChangeJob(const access::Caller& caller, std::int64_t job_id, Whose whose);
  absl::StatusOr<store::Cancelled> Cancel(store::Write write,
                                          std::optional<store::RecordAct> act = std::nullopt);
  absl::StatusOr<store::Retried> Retry(store::Write write,
                                       std::optional<store::RecordAct> act = std::nullopt);
  // labels.cc
  absl::Status DoLabel(const grpc::ServerContext& context, absl::string_view method,
                       const std::string& sweep, store::LabelSweep write,
                       v1::SweepControl& response);
  // delete.cc
  absl::Status DoDelete(const grpc::ServerContext& context, const v1::DeleteRequest& request,
                        v1::DeleteResponse& response);
  absl::Status CountDeletion(const grpc::ServerContext& context, std::int64_t sweep_id,
                             v1::DeleteResponse& response);
  absl::StatusOr<store::SweepDeleted> Delete(store::Write write,
                                             std::optional<store::RecordAct> act = std::nullopt);
  // extend.cc
  absl::Status DoExtend(const grpc::ServerContext& context, const v1::ExtendRequest& request,
                        v1::ExtendResponse& response);
  absl::StatusOr<v1::SweepUpdate> Snapshot(const std::string& sweep);
  void AddWaitingReason(v1::Sweep& sweep);

  SweepParts parts_;
  std::atomic<int> uploads_{0};  // calls of PutFile
  WatchHub hub_;
};

// INVALID_ARGUMENT if `priority` is not from -1000 to 1000.
absl::Status CheckPriority(int priority);

// The analyses of a request with their parameters resolved, each once. INVALID_ARGUMENT if there
// are none or too many, or if one of them does not exist.
absl::StatusOr<std::vector<store::Analysis>> ReadAnalyses(const v1::AnalyzeRequest& request);

// How many cells at most are stored together with a new sweep. The expander makes the rest.
inline constexpr std::size_t kFirstCells = 64;
// Submit and Extend wait for the expansion of at most this many cells, and for at most this time,
// before they answer.
inline constexpr std::uint64_t kSmallSweep = 1000;
inline constexpr absl::Duration kSmallSweepTime = absl::Seconds(10);

}  // namespace pelab::service
