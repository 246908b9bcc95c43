#include "server/service/results_service.h"

#include <cstdint>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/base/file.h"
#include "core/base/regular_file.h"
#include "core/base/status.h"
#include "core/rpc/status.h"
#include "server/limits.h"
#include "server/sched/worker_rows.h"
#include "server/service/thread_slot.h"

namespace pelab::service {
namespace {

constexpr absl::Duration kFollowInterval = absl::Milliseconds(200);

// Finds the requested attempt; 0 means the latest. nullopt if the job has none yet.
absl::StatusOr<std::optional<v1::AttemptRow>> FindAttempt(db::Reader& reader,
                                                          const v1::ReadLogRequest& request,
                                                          int number) {
  v1::ListAttemptsRequest attempts;
  attempts.mutable_filter()->add_jobs(request.job());
  PELAB_ASSIGN_OR_RETURN(const auto rows, reader.ListAttempts(attempts));
  std::optional<v1::AttemptRow> found;
  for (const v1::AttemptRow& row : rows.rows()) {
    if (number != 0 && row.number() != number) continue;
    if (!found || row.number() > found->number()) found = row;
  }
  if (!found && number != 0) {
    return absl::NotFoundError(absl::StrCat("job ", request.job(), " has no attempt ", number));
  }
  return found;
}

}  // namespace

// A page of rows, when it is the caller's turn.
template <typename Request, typename Response>
grpc::Status ResultsService::List(absl::StatusOr<Response> (db::RowReader::*list)(const Request&),
                                  const grpc::ServerContext& context, const Request& request,
                                  Response& response) {
  const auto read = [&]() -> absl::Status {
    PELAB_ASSIGN_OR_RETURN(const Turns::Turn turn, admission_.Page(context, request.page()));
    PELAB_ASSIGN_OR_RETURN(const auto reader, readers_.Take());
    PELAB_ASSIGN_OR_RETURN(response, ((*reader).*list)(request));
    return absl::OkStatus();
  };
  return rpc::ToGrpc(read());
}

grpc::Status ResultsService::ListJobs(grpc::ServerContext* context,
                                      const v1::ListJobsRequest* request,
                                      v1::ListJobsResponse* response) {
  return List(&db::RowReader::ListJobs, *context, *request, *response);
}
grpc::Status ResultsService::ListCurves(grpc::ServerContext* context,
                                        const v1::ListCurvesRequest* request,
                                        v1::ListCurvesResponse* response) {
  return List(&db::RowReader::ListCurves, *context, *request, *response);
}
grpc::Status ResultsService::ListEpochsTo(grpc::ServerContext* context,
                                          const v1::ListEpochsToRequest* request,
                                          v1::ListEpochsToResponse* response) {
  return List(&db::RowReader::ListEpochsTo, *context, *request, *response);
}
grpc::Status ResultsService::ListHeadAblations(grpc::ServerContext* context,
                                               const v1::ListHeadAblationsRequest* request,
                                               v1::ListHeadAblationsResponse* response) {
  return List(&db::RowReader::ListHeadAblations, *context, *request, *response);
}
grpc::Status ResultsService::ListDeposits(grpc::ServerContext* context,
                                          const v1::ListDepositsRequest* request,
                                          v1::ListDepositsResponse* response) {
  return List(&db::RowReader::ListDeposits, *context, *request, *response);
}
grpc::Status ResultsService::ListAnalyses(grpc::ServerContext* context,
                                          const v1::ListAnalysesRequest* request,
                                          v1::ListAnalysesResponse* response) {
  return List(&db::RowReader::ListAnalyses, *context, *request, *response);
}
grpc::Status ResultsService::ListArtifacts(grpc::ServerContext* context,
                                           const v1::ListArtifactsRequest* request,
                                           v1::ListArtifactsResponse* response) {
  return List(&db::RowReader::ListArtifacts, *context, *request, *response);
}
grpc::Status ResultsService::ListAttempts(grpc::ServerContext* context,
                                          const v1::ListAttemptsRequest* request,
                                          v1::ListAttemptsResponse* response) {
  return List(&db::RowReader::ListAttempts, *context, *request, *response);
}
grpc::Status ResultsService::ListWorkers(grpc::ServerContext* context,
                                         const v1::ListWorkersRequest* request,
                                         v1::ListWorkersResponse* response) {
  grpc::Status status = List(&db::RowReader::ListWorkers, *context, *request, *response);
  if (status.ok()) sched::AddWorkerStatuses(workers_(), absl::Now(), *response);
  return status;
}

grpc::Status ResultsService::ReadLog(grpc::ServerContext* context,
                                     const v1::ReadLogRequest* request,
                                     grpc::ServerWriter<v1::LogPart>* writer) {
  if (!request->follow()) return rpc::ToGrpc(DoReadLog(*context, *request, *writer));
  const ThreadSlot seat(followers_, limits::kLogFollowers);
  if (!seat.got()) {
    return rpc::ToGrpc(absl::ResourceExhaustedError(
        absl::StrCat("more than ", limits::kLogFollowers, " clients follow logs")));
  }
  return rpc::ToGrpc(DoReadLog(*context, *request, *writer));
}

grpc::Status ResultsService::GetArtifact(grpc::ServerContext*,
                                         const v1::GetArtifactRequest* request,
                                         grpc::ServerWriter<v1::ArtifactChunk>* writer) {
  if (absl::Status status = store::CheckSha256(request->sha256()); !status.ok()) {
    return rpc::ToGrpc(status);
  }
  const ThreadSlot seat(downloads_, limits::kDownloads);
  if (!seat.got()) {
    return rpc::ToGrpc(absl::ResourceExhaustedError(
        absl::StrCat("more than ", limits::kDownloads, " files are fetched at once: try again")));
  }
  return rpc::ToGrpc(SendArtifact(request->sha256(), *writer));
}

absl::Status ResultsService::SendArtifact(const std::string& sha256,
                                          grpc::ServerWriter<v1::ArtifactChunk>& writer) const {
  const absl::StatusOr<UniqueFd> file = OpenRegularFile(artifacts_.PathOf(sha256).value_or(""));
  const std::optional<std::uint64_t> total = file.ok() ? BytesOf(file->get()) : std::nullopt;
  if (!total) {
    return absl::NotFoundError(absl::StrCat("no artifact with sha256 ", sha256, " is stored"));
  }
  v1::ArtifactChunk chunk;
  chunk.set_total_bytes(*total);
  const auto send = [&]() -> absl::Status {
    if (stopping_) return absl::UnavailableError("the coordinator is shutting down");
    if (!writer.Write(chunk)) return absl::CancelledError("the client is gone");
    chunk.clear_total_bytes();
    return absl::OkStatus();
  };
  if (*total == 0) return send();
  std::uint64_t sent = 0;
  PELAB_RETURN_IF_ERROR(ReadPieces(file->get(), sha256, [&](std::string piece) {
    sent += piece.size();
    *chunk.mutable_data() = std::move(piece);
    return send();
  }));
  if (sent == *total) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat("artifact ", sha256, " cannot be read to its end"));
}

absl::Status ResultsService::DoReadLog(grpc::ServerContext& context,
                                       const v1::ReadLogRequest& request,
                                       grpc::ServerWriter<v1::LogPart>& writer) {
  int number = request.attempt();
  std::uint64_t offset = 0;
  for (;;) {
    bool ended = false;
    {
      PELAB_ASSIGN_OR_RETURN(const auto reader, readers_.Take());
      // The attempt is read before the log. Output that comes in between is read the next time.
      PELAB_ASSIGN_OR_RETURN(const auto attempt, FindAttempt(*reader, request, number));
      if (attempt) {
        number = attempt->number();
        ended = attempt->outcome() != v1::ATTEMPT_OUTCOME_UNSPECIFIED;
        PELAB_ASSIGN_OR_RETURN(const auto parts, reader->ReadLog(request.job(), number, offset));
        for (const v1::LogPart& part : parts) {
          if (!writer.Write(part)) return absl::OkStatus();
          offset = std::max<std::uint64_t>(offset, part.offset() + part.data().size());
        }
      }
    }
    if (!request.follow() || ended) return absl::OkStatus();
    if (stopping_) return absl::UnavailableError("the coordinator is shutting down");
    if (context.IsCancelled()) return absl::CancelledError("the client is gone");
    absl::SleepFor(kFollowInterval);
  }
}

}  // namespace pelab::service
