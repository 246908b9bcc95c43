#include "tests/support/fake_service.h"

#include <grpc/grpc.h>
#include <grpcpp/grpcpp.h>

#include <atomic>
#include <fstream>
#include <mutex>
#include <utility>

#include "core/db/check/check.h"
#include "core/db/read/reader.h"
#include "core/rpc/status.h"
#include "pelab/v1/results.grpc.pb.h"
#include "pelab/v1/sweeps.grpc.pb.h"
#include "tests/support/fake_admin.h"

namespace pelab::client {
namespace {

// Small pages, so that joining pages is tested too.
constexpr int kPage = 2;
constexpr int kMostPieces = 20'000;  // of 64 KiB

template <typename Request>
Request Small(const Request& request) {
  Request small = request;
  small.mutable_page()->set_limit(kPage);
  return small;
}

template <typename Response>
grpc::Status Answer(const absl::StatusOr<Response>& answer, Response* response) {
  if (!answer.ok()) return rpc::ToGrpc(answer.status());
  *response = *answer;
  return grpc::Status::OK;
}

class ResultsForTest final : public v1::Results::Service {
 public:
  ResultsForTest(std::string database, db::Reader& reader, std::mutex& mutex)
      : database_(std::move(database)), reader_(reader), mutex_(mutex) {}
  grpc::Status ListJobs(grpc::ServerContext*, const v1::ListJobsRequest* q,
                        v1::ListJobsResponse* r) override {
    const std::lock_guard lock(mutex_);
    return Answer(reader_.ListJobs(Small(*q)), r);
  }
  grpc::Status ListCurves(grpc::ServerContext*, const v1::ListCurvesRequest* q,
                          v1::ListCurvesResponse* r) override {
    const std::lock_guard lock(mutex_);
    if (on_curves_) {
      if (const absl::Status status = on_curves_(curve_pages_++); !status.ok()) {
        return rpc::ToGrpc(status);
      }
    }
    return Answer(reader_.ListCurves(Small(*q)), r);
  }
  void OnCurves(std::function<absl::Status(int page)> on_curves) {
    const std::lock_guard lock(mutex_);
    on_curves_ = std::move(on_curves);
  }
  grpc::Status ListHeadAblations(grpc::ServerContext*, const v1::ListHeadAblationsRequest* q,
                                 v1::ListHeadAblationsResponse* r) override {
    const std::lock_guard lock(mutex_);
    return Answer(reader_.ListHeadAblations(Small(*q)), r);
  }
  grpc::Status ListEpochsTo(grpc::ServerContext*, const v1::ListEpochsToRequest* q,
                            v1::ListEpochsToResponse* r) override {
    const std::lock_guard lock(mutex_);
    return Answer(reader_.ListEpochsTo(Small(*q)), r);
  }
  grpc::Status ListDeposits(grpc::ServerContext*, const v1::ListDepositsRequest* q,
                            v1::ListDepositsResponse* r) override {
    const std::lock_guard lock(mutex_);
    return Answer(reader_.ListDeposits(Small(*q)), r);
  }
  grpc::Status ListAnalyses(grpc::ServerContext*, const v1::ListAnalysesRequest* q,
                            v1::ListAnalysesResponse* r) override {
    const std::lock_guard lock(mutex_);
    return Answer(reader_.ListAnalyses(Small(*q)), r);
  }
  grpc::Status ListArtifacts(grpc::ServerContext*, const v1::ListArtifactsRequest* q,
                             v1::ListArtifactsResponse* r) override {
    const std::lock_guard lock(mutex_);
    return Answer(reader_.ListArtifacts(Small(*q)), r);
  }
  // One byte at a time, so that joining the pieces is tested too.
  grpc::Status GetArtifact(grpc::ServerContext*, const v1::GetArtifactRequest* q,
                           grpc::ServerWriter<v1::ArtifactChunk>* w) override {
    std::ifstream file(db::ArtifactPath(database_, q->sha256()).value_or(""), std::ios::binary);
    if (!file) return rpc::ToGrpc(absl::NotFoundError("no stored file " + q->sha256()));
    if (without_end_) return WriteUntilRefused(w);
    for (char byte = 0; file.get(byte);) {
      v1::ArtifactChunk chunk;
      chunk.set_data(std::string(1, byte));
      w->Write(chunk);
    }
    return grpc::Status::OK;
  }
  grpc::Status ListAttempts(grpc::ServerContext*, const v1::ListAttemptsRequest* q,
                            v1::ListAttemptsResponse* r) override {
    const std::lock_guard lock(mutex_);
    return Answer(reader_.ListAttempts(Small(*q)), r);
  }
  grpc::Status ReadLog(grpc::ServerContext*, const v1::ReadLogRequest* q,
                       grpc::ServerWriter<v1::LogPart>* w) override {
    const std::lock_guard lock(mutex_);
    const auto parts = reader_.ReadLog(q->job(), q->attempt(), 0);
    if (!parts.ok()) return rpc::ToGrpc(parts.status());
    for (const v1::LogPart& part : *parts) w->Write(part);
    return grpc::Status::OK;
  }

  std::shared_ptr<const std::atomic<int>> SendFilesWithoutEnd() {
    without_end_ = true;
    return pieces_;
  }

 private:
  // A bounded loop, in case nobody ends it.
  grpc::Status WriteUntilRefused(grpc::ServerWriter<v1::ArtifactChunk>* w) {
    v1::ArtifactChunk chunk;
    chunk.set_data(std::string(64 << 10, 'x'));
    while (*pieces_ < kMostPieces && w->Write(chunk)) ++*pieces_;
    return grpc::Status::OK;
  }

  std::string database_;
  db::Reader& reader_;
  std::mutex& mutex_;
  std::function<absl::Status(int page)> on_curves_;
  int curve_pages_ = 0;
  std::atomic<bool> without_end_ = false;
  const std::shared_ptr<std::atomic<int>> pieces_ = std::make_shared<std::atomic<int>>(0);
};

class SweepsForTest final : public v1::Sweeps::Service {
 public:
  SweepsForTest(db::Reader& reader, std::mutex& mutex) : reader_(reader), mutex_(mutex) {}
  grpc::Status GetSweep(grpc::ServerContext*, const v1::GetSweepRequest* q, v1::Sweep* r) override {
    const std::lock_guard lock(mutex_);
    return Answer(reader_.GetSweep(q->sweep().sweep()), r);
  }
  grpc::Status ListSweeps(grpc::ServerContext*, const v1::ListSweepsRequest* q,
                          v1::ListSweepsResponse* r) override {
    const std::lock_guard lock(mutex_);
    return Answer(reader_.ListSweeps(Small(*q)), r);
  }
  // Ends immediately: the sweeps in these tests have ended.
  grpc::Status WatchSweep(grpc::ServerContext*, const v1::WatchSweepRequest* q,
                          grpc::ServerWriter<v1::SweepUpdate>* w) override {
    const std::lock_guard lock(mutex_);
    const auto sweep = reader_.GetSweep(q->sweep().sweep());
    if (!sweep.ok()) return rpc::ToGrpc(sweep.status());
    v1::SweepUpdate update;
    *update.mutable_sweep() = *sweep;
    w->Write(update);
    return grpc::Status::OK;
  }
  // Echoes the request, so that a test can check it.
  grpc::Status Submit(grpc::ServerContext*, const v1::SubmitRequest* q,
                      v1::SubmitResponse* r) override {
    if (q->client_token().empty() || q->priority() == -7) {
      v1::Violations violations;
      v1::Violation& v = *violations.add_violations();
      v.set_line(3);
      v.set_column(22);
      v.set_message("refused by the server");
      return rpc::ToGrpc(rpc::ViolationsError(violations));
    }
    r->set_sweep_id(1);
    r->set_name(
        "priority " + std::to_string(q->priority()) + (q->fresh() ? " fresh " : " ") +
        (q->overrides_size() == 1 ? q->overrides(0).field() + "=" + q->overrides(0).value() : ""));
    r->mutable_counts()->set_analysis_jobs(q->priority() == 6 ? 2 : 0);
    r->set_expanded(true);
    r->mutable_counts()->set_new_jobs(12);
    return grpc::Status::OK;
  }

  // Counts the request: the jobs as queued, the analyses as stored.
  grpc::Status Analyze(grpc::ServerContext*, const v1::AnalyzeRequest* q,
                       v1::AnalyzeResponse* r) override {
    r->set_queued(q->has_sweep() ? 4 : static_cast<std::uint64_t>(q->jobs().jobs_size()));
    r->set_stored(static_cast<std::uint64_t>(q->analyses_size()));
    r->set_not_trained(1);
    r->add_reasons("job 4 failed: oom\x1b[31m");
    return grpc::Status::OK;
  }

 private:
  db::Reader& reader_;
  std::mutex& mutex_;
};

}  // namespace

struct ServiceForTest::State {
  State(const std::string& database, std::unique_ptr<db::Reader> opened)
      : reader(std::move(opened)),
        results(database, *reader, mutex),
        sweeps(*reader, mutex),
        admin([this](const v1::ListAuditRequest& request) {
          const std::lock_guard lock(mutex);
          return reader->ListAudit(Small(request));
        }) {}
  std::mutex mutex;
  std::unique_ptr<db::Reader> reader;
  ResultsForTest results;
  SweepsForTest sweeps;
  AdminForTest admin;
  std::unique_ptr<grpc::Server> server;
};

ServiceForTest::ServiceForTest(const std::string& database, const std::string& socket)
    : address_("unix:" + socket) {
  // gRPC stays initialized: shutting it down may wait 10 s for one of its own threads.
  static const bool kept = (grpc_init(), true);
  (void)kept;
  state_ = std::make_unique<State>(database, db::Reader::Open(database).value());
  grpc::ServerBuilder builder;
  builder.AddListeningPort(address_, grpc::InsecureServerCredentials());
  builder.RegisterService(&state_->results);
  builder.RegisterService(&state_->sweeps);
  builder.RegisterService(&state_->admin);
  state_->server = builder.BuildAndStart();
}

std::shared_ptr<const std::atomic<int>> ServiceForTest::SendFilesWithoutEnd() {
  return state_->results.SendFilesWithoutEnd();
}

void ServiceForTest::OnCurves(std::function<absl::Status(int page)> on_curves) {
  state_->results.OnCurves(std::move(on_curves));
}

void ServiceForTest::PutPrincipal(const v1::Principal& principal) { state_->admin.Put(principal); }

ServiceForTest::~ServiceForTest() {
  if (state_->server) state_->server->Shutdown();
}

}  // namespace pelab::client
