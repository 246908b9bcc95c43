#include "server/service/fleet_service.h"

#include <algorithm>
#include <optional>
#include <variant>

#include "absl/strings/str_cat.h"
#include "core/base/mutex.h"
#include "core/base/status.h"
#include "core/base/utf8.h"
#include "core/event/enums.h"
#include "core/rpc/status.h"
#include "server/limits.h"
#include "server/service/blocking.h"
#include "server/service/convert.h"
#include "server/service/thread_slot.h"

namespace pelab::service {
namespace {

absl::Status ShuttingDown() {
  return absl::UnavailableError("the coordinator is shutting down: connect again");
}

}  // namespace

grpc::ServerBidiReactor<v1::WorkerMessage, v1::CoordinatorMessage>* FleetService::Session(
    grpc::CallbackServerContext* context) {
  const absl::StatusOr<access::Caller> caller = gate_.CallerOf(*context);
  const std::shared_ptr<WorkerStream> stream =
      WorkerStream::Begin(context_, gate_.open_calls(), *context, caller.ok() ? caller->name : "");
  if (!caller.ok()) {
    stream->Close(caller.status());
    return stream.get();
  }
  bool closed = false;
  {
    MutexLock lock(&mutex_);
    std::erase_if(streams_, [](const auto& weak) { return weak.expired(); });
    streams_.push_back(stream);
    closed = closed_;
  }
  if (closed) stream->Close(ShuttingDown());
  return stream.get();
}

void FleetService::CloseAll() {
  std::vector<std::weak_ptr<WorkerStream>> streams;
  {
    MutexLock lock(&mutex_);
    closed_ = true;
    streams.swap(streams_);
  }
  for (const auto& weak : streams) {
    if (const auto stream = weak.lock()) stream->Close(ShuttingDown());
  }
}

absl::Status FleetService::Receive(const v1::ArtifactHeader& header,
                                   grpc::ServerReader<v1::PutArtifactRequest>& reader) {
  using Room = store::ArtifactFiles::Room;
  PELAB_ASSIGN_OR_RETURN(const auto upload,
                         artifacts_.Begin(header.sha256(), header.bytes(),
                                          header.checkpoint() ? Room::kFree : Room::kMayBeMade));
  v1::PutArtifactRequest request;
  while (reader.Read(&request)) {
    if (!request.has_chunk()) {
      return absl::InvalidArgumentError("an upload has one header, then chunks");
    }
    PELAB_RETURN_IF_ERROR(header.checkpoint() ? upload->Write(request.chunk())
                                              : collector_.Write(*upload, request.chunk()));
  }
  return upload->Commit();
}

absl::Status FleetService::Announce(const v1::ArtifactHeader& header) {
  absl::Status status = artifacts_.Announce(header.sha256(), header.bytes());
  if (!absl::IsResourceExhausted(status) || header.checkpoint()) return status;
  collector_.MakeRoom(0);  // makes room for a file that is counted already
  return artifacts_.Announce(header.sha256(), header.bytes());
}

// Asks, before a byte of the file counts, whether its attempt may send it. Afterwards it stores the
// row that keeps the file, before the worker is told that the upload succeeded.
absl::Status FleetService::Record(const v1::ArtifactHeader& header, Asked asked) {
  if (header.attempt_id() == 0) {
    return absl::InvalidArgumentError("an upload must name the open attempt that its file is of");
  }
  const int most = header.checkpoint() ? limits::kCheckpointsOfAttempt : limits::kFilesOfAttempt;
  const auto recorded = AppendAndWait(
      context_.journal, store::RecordUpload{header.attempt_id(), header.token(), header.sha256(),
                                            most, asked == Asked::kBefore});
  // The worker should try again, whatever the error of the database is.
  if (!recorded.ok()) return absl::UnavailableError(recorded.status().message());
  const auto& result = std::get<store::UploadRecorded>(*recorded);
  if (result.accepted) return absl::OkStatus();
  if (result.full) {
    return absl::ResourceExhaustedError(
        absl::StrCat("attempt ", header.attempt_id(), " has sent ", most,
                     " files that none of its events names; no more are kept"));
  }
  return absl::FailedPreconditionError(
      absl::StrCat("attempt ", header.attempt_id(), " is not open: its files are not kept"));
}

absl::Status FleetService::Put(grpc::ServerReader<v1::PutArtifactRequest>& reader,
                               v1::PutArtifactResponse& response) {
  v1::PutArtifactRequest request;
  if (!reader.Read(&request) || !request.has_header()) {
    return absl::InvalidArgumentError("the first message of an upload must be its header");
  }
  const v1::ArtifactHeader header = request.header();
  PELAB_RETURN_IF_ERROR(store::CheckSha256(header.sha256()));
  PELAB_RETURN_IF_ERROR(Record(header, Asked::kBefore));
  const store::ArtifactFiles::FileHold hold(artifacts_, header.sha256());
  if (header.in_store()) {
    PELAB_RETURN_IF_ERROR(Announce(header));
  } else if (artifacts_.Has(header.sha256())) {
    response.set_already_there(true);
  } else {
    PELAB_RETURN_IF_ERROR(Receive(header, reader));
  }
  return Record(header, Asked::kAfter);
}

absl::Status FleetService::DoDrain(const grpc::ServerContext& context,
                                   const v1::DrainWorkerRequest& request,
                                   v1::DrainWorkerResponse& response) {
  PELAB_ASSIGN_OR_RETURN(const access::Caller caller, gate_.CallerOf(context));
  if (request.worker().empty()) {
    return absl::InvalidArgumentError("a worker must be named: its name, its id or its host");
  }
  const v1::Drain::Mode drain = request.mode();
  if (drain == v1::Drain::MODE_UNSPECIFIED || !v1::Drain::Mode_IsValid(drain)) {
    return absl::InvalidArgumentError(absl::StrCat("drain mode ", static_cast<int>(drain),
                                                   " is unknown; known: FINISH, CHECKPOINT, KILL, "
                                                   "RESUME"));
  }
  PELAB_ASSIGN_OR_RETURN(
      const store::WriteResult result,
      AppendAndWait(
          context_.journal, store::DrainWorker{request.worker(), drain},
          [this, drain](const store::WriteResult& stored) {
            const auto& drained = std::get<store::WorkerDrained>(stored);
            if (!drained.refused.empty()) return;
            context_.executor.Post(
                [this, drain, id = drained.worker_id] { context_.scheduler.Drain(id, drain); });
          },
          caller.Act("Fleet/DrainWorker", absl::StrCat("worker ", request.worker()))));
  const auto& drained = std::get<store::WorkerDrained>(result);
  if (!drained.refused.empty()) return absl::NotFoundError(drained.refused);
  response.set_worker_id(drained.worker_id);
  response.set_name(drained.name);
  response.set_host(drained.host);
  response.set_drain(event::NameOf(drain));
  response.set_busy_slots(drained.busy_slots);
  response.set_attempts(drained.attempts);
  response.set_changed(drained.changed);
  return absl::OkStatus();
}

grpc::Status FleetService::DrainWorker(grpc::ServerContext* context,
                                       const v1::DrainWorkerRequest* request,
                                       v1::DrainWorkerResponse* response) {
  return rpc::ToGrpc(DoDrain(*context, *request, *response));
}

absl::Status FleetService::DoDemand(const v1::DemandRequest& request,
                                    v1::DemandResponse& response) {
  if (request.device_kind() != "cpu" && request.device_kind() != "gpu") {
    return absl::InvalidArgumentError(absl::StrCat("device kind \"",
                                                   Escape(Shorten(request.device_kind(), 100)),
                                                   "\" is unknown; known: cpu, gpu"));
  }
  const sched::Slot slot{.device_kind = request.device_kind(),
                         .memory_bytes = request.memory_bytes()};
  using Answer = std::optional<sched::Scheduler::Demand>;
  const Answer demand = AskOn<Answer>(
      context_.executor, [this, slot] { return Answer(context_.scheduler.DemandFor(slot)); },
      std::nullopt);
  if (!demand) return absl::UnavailableError("the scheduler is busy: try again later");
  response.set_waiting_jobs(static_cast<std::int64_t>(demand->waiting_jobs));
  response.set_free_slots(static_cast<std::int64_t>(demand->free_slots));
  return absl::OkStatus();
}

grpc::Status FleetService::Demand(grpc::ServerContext*, const v1::DemandRequest* request,
                                  v1::DemandResponse* response) {
  return rpc::ToGrpc(DoDemand(*request, *response));
}

grpc::Status FleetService::PutArtifact(grpc::ServerContext*,
                                       grpc::ServerReader<v1::PutArtifactRequest>* reader,
                                       v1::PutArtifactResponse* response) {
  const ThreadSlot seat(uploads_, limits::kUploads);
  if (!seat.got()) {
    // Not RESOURCE_EXHAUSTED, at which a worker gives the file up.
    return rpc::ToGrpc(absl::UnavailableError(
        absl::StrCat(limits::kUploads, " files are being uploaded: try again later")));
  }
  grpc::Status status = rpc::ToGrpc(Put(*reader, *response));
  // A client whose flow-control window is full would learn of an early answer only at its next
  // ping. So the rest of the upload is read and ignored.
  std::size_t drained = 0;
  v1::PutArtifactRequest request;
  while (drained < limits::kDrainedBytes && reader->Read(&request))
    drained += request.chunk().size();
  return status;
}

}  // namespace pelab::service
