#include "client/import/importer.h"

#include <algorithm>
#include <filesystem>
#include <functional>
#include <optional>
#include <utility>

#include "client/import/recorded_runs.h"
#include "client/limits.h"
#include "core/base/file.h"
#include "core/base/regular_file.h"
#include "core/base/sha256.h"
#include "core/base/status.h"
#include "core/base/strings.h"
#include "migrations/schema.h"

namespace pelab::client {
namespace {

absl::Status ReadStored(const std::string& path,
                        const std::function<absl::Status(std::string piece)>& use) {
  PELAB_ASSIGN_OR_RETURN(const UniqueFd fd, OpenRegularFile(path));
  return ReadPieces(fd.get(), path, use);
}

// Whether the file exists and has the expected size and SHA-256.
bool IsWhole(const std::string& path, const v1::ImportedFile& file) {
  Sha256 hash;
  std::uint64_t bytes = 0;
  const absl::Status read = ReadStored(path, [&](const std::string& piece) {
    hash.Update(piece);
    bytes += piece.size();
    return absl::OkStatus();
  });
  return read.ok() && bytes == file.bytes() && hash.FinishHex() == file.sha256();
}

}  // namespace

absl::StatusOr<std::unique_ptr<Importer>> Importer::Open(const std::string& path, bool with_files) {
  std::error_code ignored;
  const bool folder = std::filesystem::is_directory(path, ignored);
  auto reader = folder ? OpenRecordedRuns(path) : db::ImportReader::Open(path);
  if (reader.ok()) {
    return std::unique_ptr<Importer>(new Importer(*std::move(reader), with_files));
  }
  if (!reader.status().GetPayload(migrations::kOlderSchemaPayload)) return reader.status();
  return absl::FailedPreconditionError(
      Concat(std::string(reader.status().message()),
             "; to leave it as it is, migrate a copy: pelab db migrate "
             "--db COPY, then import that"));
}

template <typename Use>
absl::Status Importer::ForEachNew(const Check& check, ImportReport& report, const Use& use) {
  std::int64_t others = 0;
  PELAB_ASSIGN_OR_RETURN(const std::vector<db::FinishedJob> jobs, reader_->Finished(&others));
  report.unfinished = static_cast<std::uint64_t>(others);
  jobs_ = jobs.size();
  for (std::size_t at = 0; at < jobs.size(); at += limits::kImportKeys) {
    const std::size_t end = std::min(at + limits::kImportKeys, jobs.size());
    v1::CheckImportRequest request;
    for (std::size_t i = at; i < end; ++i) {
      v1::ImportKey& key = *request.add_keys();
      key.set_key(jobs[i].key);
      PELAB_ASSIGN_OR_RETURN(*key.mutable_curve_sha256(), reader_->HashOfCurve(jobs[i].job_id));
    }
    PELAB_ASSIGN_OR_RETURN(const v1::CheckImportResponse answer, check(request));
    if (answer.verdicts_size() != request.keys_size()) {
      return absl::InternalError("the coordinator did not answer for every key");
    }
    for (std::size_t i = at; i < end; ++i) {
      switch (answer.verdicts(static_cast<int>(i - at))) {
        case v1::IMPORT_VERDICT_NEW:
          PELAB_RETURN_IF_ERROR(use(jobs[i]));
          break;
        case v1::IMPORT_VERDICT_DIFFERENT:
          report.different.push_back(jobs[i].key);
          break;
        case v1::IMPORT_VERDICT_IN_FLIGHT:
          report.in_flight += 1;
          break;
        default:
          report.present += 1;
      }
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<ImportReport> Importer::Preview(const Check& check) {
  ImportReport report;
  PELAB_RETURN_IF_ERROR(ForEachNew(check, report, [&](const db::FinishedJob& finished) {
    report.imported += 1;
    if (!with_files_) return absl::OkStatus();
    PELAB_ASSIGN_OR_RETURN(const db::ExportedJob job, reader_->ReadJob(finished.job_id));
    for (const v1::ImportedFile& file : job.files) {
      report.files += 1;
      report.file_bytes += file.bytes();
    }
    return absl::OkStatus();
  }));
  return report;
}

absl::Status Importer::SendFile(std::int64_t job_id, const v1::ImportedFile& file,
                                const std::function<absl::Status(const v1::ImportJobPart&)>& write,
                                ImportReport& report) {
  const std::optional<std::string> path = reader_->PathOf(job_id, file);
  if (!path || !IsWhole(*path, file)) {
    report.missing_files.push_back(path.value_or(file.sha256()));
    return absl::OkStatus();
  }
  v1::ImportJobPart part;
  *part.mutable_file() = file;
  PELAB_RETURN_IF_ERROR(write(part));
  PELAB_RETURN_IF_ERROR(ReadStored(*path, [&](std::string piece) {
    part.set_data(std::move(piece));
    return write(part);
  }));
  report.files += 1;
  report.file_bytes += file.bytes();
  return absl::OkStatus();
}

absl::Status Importer::SendJob(std::int64_t job_id, const db::ExportedJob& job,
                               const std::function<absl::Status(const v1::ImportJobPart&)>& write,
                               ImportReport& report) {
  v1::ImportJobPart part;
  *part.mutable_job() = job.job;
  PELAB_RETURN_IF_ERROR(write(part));
  for (std::size_t i = 0; i < job.epochs.size();) {
    part.mutable_epochs()->Clear();
    for (int n = 0; n < limits::kImportEpochs && i < job.epochs.size(); ++n, ++i) {
      *part.mutable_epochs()->add_epochs() = job.epochs[i];
    }
    PELAB_RETURN_IF_ERROR(write(part));
  }
  for (const v1::ImportedAnalysis& analysis : job.analyses) {
    *part.mutable_analysis() = analysis;
    PELAB_RETURN_IF_ERROR(write(part));
  }
  if (with_files_) {
    for (const v1::ImportedFile& file : job.files) {
      PELAB_RETURN_IF_ERROR(SendFile(job_id, file, write, report));
    }
  }
  part.set_end(true);
  return write(part);
}

absl::Status Importer::SendSweeps(Coordinator& coordinator, const std::function<bool()>& stopped,
                                  ImportReport& report) {
  PELAB_ASSIGN_OR_RETURN(const std::vector<db::ExportedSweep> sweeps, reader_->Sweeps());
  for (const db::ExportedSweep& sweep : sweeps) {
    if (stopped()) return absl::CancelledError("stopped");
    const auto send = [&](const std::function<absl::Status(const v1::ImportSweepPart&)>& write) {
      v1::ImportSweepPart part;
      *part.mutable_sweep() = sweep.sweep;
      PELAB_RETURN_IF_ERROR(write(part));
      for (std::uint64_t from = 0;;) {
        PELAB_ASSIGN_OR_RETURN(*part.mutable_cells(),
                               reader_->Cells(sweep.sweep_id, from, limits::kImportCells));
        if (part.cells().keys_size() == 0) break;
        from = *part.cells().ordinals().rbegin() + 1;
        PELAB_RETURN_IF_ERROR(write(part));
      }
      part.set_end(true);
      return write(part);
    };
    PELAB_ASSIGN_OR_RETURN(const v1::ImportSweepResponse answer, coordinator.ImportSweep(send));
    if (answer.sweep_id() == 0) continue;
    if (!answer.finished()) {
      report.partial_sweeps.push_back(Concat(sweep.sweep.name(), ": ", answer.jobs(), " of ",
                                             answer.jobs() + answer.missing(), " jobs"));
    } else if (answer.changed()) {
      report.sweeps += 1;
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<ImportReport> Importer::Run(
    Coordinator& coordinator, const std::function<bool()>& stopped,
    const std::function<void(std::uint64_t done, std::uint64_t all)>& progress) {
  ImportReport report;
  const auto check = [&](const v1::CheckImportRequest& request) {
    return coordinator.CheckImport(request);
  };
  PELAB_RETURN_IF_ERROR(ForEachNew(check, report, [&](const db::FinishedJob& finished) {
    if (stopped()) return absl::CancelledError("stopped");
    PELAB_ASSIGN_OR_RETURN(const db::ExportedJob job, reader_->ReadJob(finished.job_id));
    const auto answer = coordinator.ImportJob(
        [&](const auto& write) { return SendJob(finished.job_id, job, write, report); });
    PELAB_RETURN_IF_ERROR(answer.status());
    report.old_matrices += static_cast<std::uint64_t>(job.left_out);
    // The job may have been stored or started here since the check.
    std::uint64_t& count = answer->verdict() == v1::IMPORT_VERDICT_NEW         ? report.imported
                           : answer->verdict() == v1::IMPORT_VERDICT_IN_FLIGHT ? report.in_flight
                                                                               : report.present;
    count += 1;
    progress(report.imported + report.present + report.in_flight, jobs_);
    return absl::OkStatus();
  }));
  PELAB_RETURN_IF_ERROR(SendSweeps(coordinator, stopped, report));
  return report;
}

}  // namespace pelab::client
