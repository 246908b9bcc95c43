#include "server/service/transfer_service.h"

#include <deque>
#include <memory>
#include <optional>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "core/base/status.h"
#include "core/db/import/import_reader.h"
#include "core/rpc/status.h"
#include "server/limits.h"
#include "server/service/blocking.h"
#include "server/service/import_parts.h"
#include "server/service/thread_slot.h"

namespace pelab::service {
namespace {

// Collects the parts of one job. Its files are on disk and held before the job is stored.
class Incoming {
 public:
  Incoming(store::ArtifactFiles& artifacts, ArtifactCollector& collector)
      : artifacts_(artifacts), collector_(collector) {}

  absl::Status Add(const v1::ImportJobPart& part) {
    if (!part.has_data() && !part.has_file()) {
      bytes_ += part.ByteSizeLong();
      if (bytes_ > limits::kImportedJobBytes) {
        return absl::ResourceExhaustedError(absl::StrCat(
            "a job has at most ", limits::kImportedJobBytes, " bytes besides its files"));
      }
    }
    if (ended_) return absl::InvalidArgumentError("a part came after the end of an import");
    if (part.has_job() == job_.has_value()) {
      return absl::InvalidArgumentError("an import is of one job, which comes first");
    }
    switch (part.part_case()) {
      case v1::ImportJobPart::kJob: {
        PELAB_ASSIGN_OR_RETURN(job_, ToImportJob(part.job()));
        return absl::OkStatus();
      }
      case v1::ImportJobPart::kEpochs:
        job_->epochs.insert(job_->epochs.end(), part.epochs().epochs().begin(),
                            part.epochs().epochs().end());
        return absl::OkStatus();
      case v1::ImportJobPart::kAnalysis:
        job_->analyses.push_back(part.analysis());
        return absl::OkStatus();
      case v1::ImportJobPart::kFile:
        return Begin(part.file());
      case v1::ImportJobPart::kData:
        return Append(part.data());
      case v1::ImportJobPart::kEnd:
        ended_ = true;
        return EndFile();
      default:
        return absl::InvalidArgumentError(
            "an import has a part that this coordinator does not know");
    }
  }

  // Returns the complete job.
  absl::StatusOr<store::ImportJob> Finish() {
    if (!ended_) return absl::CancelledError("the import broke off");
    return *std::move(job_);
  }

 private:
  absl::Status Begin(const v1::ImportedFile& file) {
    PELAB_RETURN_IF_ERROR(EndFile());
    PELAB_RETURN_IF_ERROR(CheckFile(file));
    holds_.emplace_back(artifacts_, file.sha256());
    job_->files.push_back(file);
    skipping_ = artifacts_.Has(file.sha256());
    if (skipping_) return absl::OkStatus();
    PELAB_ASSIGN_OR_RETURN(upload_, artifacts_.Begin(file.sha256(), file.bytes(),
                                                     store::ArtifactFiles::Room::kMayBeMade));
    return absl::OkStatus();
  }
  absl::Status Append(const std::string& data) {
    if (data.size() > limits::kImportedPieceBytes) {
      return absl::InvalidArgumentError(
          absl::StrCat("a piece of a file has at most ", limits::kImportedPieceBytes, " bytes"));
    }
    if (skipping_) return absl::OkStatus();
    if (!upload_) return absl::InvalidArgumentError("data came before the file that they are of");
    return collector_.Write(*upload_, data);
  }
  absl::Status EndFile() {
    if (!upload_) return absl::OkStatus();
    PELAB_RETURN_IF_ERROR(upload_->Commit());
    upload_.reset();
    return absl::OkStatus();
  }

  store::ArtifactFiles& artifacts_;
  ArtifactCollector& collector_;
  std::size_t bytes_ = 0;
  std::optional<store::ImportJob> job_;
  // Held until the stored job refers to the files.
  std::deque<store::ArtifactFiles::FileHold> holds_;
  std::unique_ptr<store::ArtifactFiles::Upload> upload_;
  bool skipping_ = false;  // the file is present already
  bool ended_ = false;
};

v1::ImportVerdict VerdictToProto(store::JobImported::Verdict verdict) {
  switch (verdict) {
    case store::JobImported::kStored:
      return v1::IMPORT_VERDICT_NEW;
    case store::JobImported::kPresent:
      return v1::IMPORT_VERDICT_PRESENT;
    case store::JobImported::kInFlight:
      return v1::IMPORT_VERDICT_IN_FLIGHT;
  }
  return v1::IMPORT_VERDICT_UNSPECIFIED;
}

absl::Status TooMany() {
  return absl::ResourceExhaustedError(
      absl::StrCat(limits::kImports, " imports are under way: try again later"));
}

}  // namespace

grpc::Status TransferService::CheckImport(grpc::ServerContext*,
                                          const v1::CheckImportRequest* request,
                                          v1::CheckImportResponse* response) {
  if (request->keys_size() > limits::kImportedKeys) {
    return rpc::ToGrpc(absl::InvalidArgumentError(
        absl::StrCat(request->keys_size(), " keys at once; at most ", limits::kImportedKeys)));
  }
  const auto reader = db::ImportReader::Open(database_);
  if (!reader.ok()) return rpc::ToGrpc(reader.status());
  const auto verdicts = (*reader)->Check(*request);
  if (!verdicts.ok()) return rpc::ToGrpc(verdicts.status());
  for (const v1::ImportVerdict verdict : *verdicts) response->add_verdicts(verdict);
  return grpc::Status::OK;
}

absl::Status TransferService::Take(const grpc::ServerContext& context,
                                   grpc::ServerReader<v1::ImportJobPart>& reader,
                                   v1::ImportJobResponse& response) {
  PELAB_ASSIGN_OR_RETURN(const access::Caller caller, gate_.CallerOf(context));
  Incoming incoming(artifacts_, collector_);
  v1::ImportJobPart part;
  while (reader.Read(&part)) PELAB_RETURN_IF_ERROR(incoming.Add(part));
  PELAB_ASSIGN_OR_RETURN(store::ImportJob job, incoming.Finish());
  const std::string key = job.cell.key;
  PELAB_ASSIGN_OR_RETURN(
      const store::WriteResult result,
      AppendAndWait(journal_, std::move(job), nullptr,
                    caller.Act("Transfer/ImportJob", absl::StrCat("job ", key))));
  const auto& imported = std::get<store::JobImported>(result);
  if (!imported.refused.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("job ", key.substr(0, 12), " is not sound: ", imported.refused));
  }
  response.set_verdict(VerdictToProto(imported.verdict));
  response.set_job_id(imported.job_id);
  response.set_generation(imported.generation);
  return absl::OkStatus();
}

grpc::Status TransferService::ImportJob(grpc::ServerContext* context,
                                        grpc::ServerReader<v1::ImportJobPart>* reader,
                                        v1::ImportJobResponse* response) {
  const ThreadSlot seat(under_way_, limits::kImports);
  if (!seat.got()) return rpc::ToGrpc(TooMany());
  return rpc::ToGrpc(Take(*context, *reader, *response));
}

absl::Status TransferService::TakeSweep(const grpc::ServerContext& context,
                                        grpc::ServerReader<v1::ImportSweepPart>& reader,
                                        v1::ImportSweepResponse& response) {
  PELAB_ASSIGN_OR_RETURN(const access::Caller caller, gate_.CallerOf(context));
  v1::ImportSweepPart part;
  if (!reader.Read(&part) || !part.has_sweep()) {
    return absl::InvalidArgumentError("the first message of an imported sweep is the sweep");
  }
  const bool whole = part.sweep().whole();
  PELAB_ASSIGN_OR_RETURN(store::ImportSweep sweep, ToImportSweep(part.sweep()));
  auto act = caller.Act("Transfer/ImportSweep", absl::StrCat("sweep ", sweep.name));
  const auto store = [&](bool finish) -> absl::Status {
    sweep.finish = finish;
    PELAB_ASSIGN_OR_RETURN(
        const store::WriteResult result,
        AppendAndWait(journal_, sweep, nullptr, std::exchange(act, std::nullopt)));
    const auto& imported = std::get<store::SweepImported>(result);
    if (!imported.refused.empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat("sweep ", sweep.name, " cannot be imported: ", imported.refused));
    }
    response.set_sweep_id(imported.sweep_id);
    response.set_changed(response.changed() || imported.changed);
    response.set_finished(imported.finished);
    response.set_jobs(response.jobs() + static_cast<std::uint64_t>(imported.jobs));
    response.set_missing(response.missing() + static_cast<std::uint64_t>(imported.missing));
    return absl::OkStatus();
  };
  bool ended = false;
  while (reader.Read(&part)) {
    ended = part.has_end();
    if (ended) break;
    const v1::ImportedCells& cells = part.cells();
    if (cells.ordinals_size() != cells.keys_size() || cells.keys_size() > limits::kImportedCells) {
      return absl::InvalidArgumentError(
          absl::StrCat("cells have an ordinal and a key each, at most ", limits::kImportedCells,
                       " in a message"));
    }
    sweep.jobs.clear();
    for (int i = 0; i < cells.keys_size(); ++i) {
      if (cells.ordinals(i) >= sweep.cells) {
        return absl::InvalidArgumentError(
            absl::StrCat("cell ", cells.ordinals(i), " of a sweep of ", sweep.cells));
      }
      sweep.jobs.emplace_back(cells.ordinals(i), cells.keys(i));
    }
    PELAB_RETURN_IF_ERROR(store(/*finish=*/false));
  }
  if (!ended) return absl::CancelledError("the import broke off");
  if (!whole || response.missing() > 0 || response.jobs() == 0 || response.finished()) {
    return absl::OkStatus();
  }
  sweep.jobs.clear();
  return store(/*finish=*/true);
}

grpc::Status TransferService::ImportSweep(grpc::ServerContext* context,
                                          grpc::ServerReader<v1::ImportSweepPart>* reader,
                                          v1::ImportSweepResponse* response) {
  const ThreadSlot seat(under_way_, limits::kImports);
  if (!seat.got()) return rpc::ToGrpc(TooMany());
  return rpc::ToGrpc(TakeSweep(*context, *reader, *response));
}

}  // namespace pelab::service
