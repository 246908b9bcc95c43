// `pelab import`: copies another database's finished jobs, matched by key, into the served
// database.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/source/data_source.h"
#include "core/db/import/import_reader.h"

namespace pelab::client {

// The result of an import, or of its preview. "Here" is the target database, "there" the other one.
struct ImportReport {
  std::uint64_t imported = 0;          // jobs that were new here
  std::uint64_t present = 0;           // already trained here, with the same curve
  std::uint64_t in_flight = 0;         // being trained here; left alone
  std::uint64_t unfinished = 0;        // not trained there
  std::vector<std::string> different;  // keys whose curve here differs; nothing is overwritten
  std::uint64_t files = 0;
  std::uint64_t file_bytes = 0;
  std::vector<std::string>
      missing_files;               // missing or damaged there; their jobs are imported without them
  std::uint64_t old_matrices = 0;  // matrices of version 1, left out
  std::uint64_t sweeps = 0;        // sweeps that this import made complete here
  std::vector<std::string> partial_sweeps;  // lack jobs here; kept as cancelled
};

class Importer {
 public:
  // `path` is the other database, or a folder of recorded runs (recorded_runs.h). Returns the
  // errors of ImportReader::Open and OpenRecordedRuns. FAILED_PRECONDITION for a database of an
  // older schema; the message says how to migrate a copy.
  static absl::StatusOr<std::unique_ptr<Importer>> Open(const std::string& path, bool with_files);

  // Answers for each key of a request whether its job is new here, present, different or in flight.
  // It calls CheckImport of a coordinator, or reads the target database file.
  using Check =
      std::function<absl::StatusOr<v1::CheckImportResponse>(const v1::CheckImportRequest&)>;

  // Counts what an import would do, without sweeps.
  absl::StatusOr<ImportReport> Preview(const Check& check);
  // Imports job by job; each job is stored and acknowledged before the next one is sent. Calls
  // `stopped` between jobs and returns CANCELLED if the answer is true; a repeated import then
  // continues with the next job. Tells `progress` from time to time how many of all jobs are done.
  absl::StatusOr<ImportReport> Run(
      Coordinator& coordinator, const std::function<bool()>& stopped,
      const std::function<void(std::uint64_t done, std::uint64_t all)>& progress);

 private:
  Importer(std::unique_ptr<db::ImportReader> reader, bool with_files)
      : reader_(std::move(reader)), with_files_(with_files) {}

  // Checks all jobs, some at a time, and calls `use(job) -> Status` for those that are new.
  template <typename Use>
  absl::Status ForEachNew(const Check& check, ImportReport& report, const Use& use);
  absl::Status SendJob(std::int64_t job_id, const db::ExportedJob& job,
                       const std::function<absl::Status(const v1::ImportJobPart&)>& write,
                       ImportReport& report);
  absl::Status SendFile(std::int64_t job_id, const v1::ImportedFile& file,
                        const std::function<absl::Status(const v1::ImportJobPart&)>& write,
                        ImportReport& report);
  absl::Status SendSweeps(Coordinator& coordinator, const std::function<bool()>& stopped,
                          ImportReport& report);

  const std::unique_ptr<db::ImportReader> reader_;
  const bool with_files_;
  std::uint64_t jobs_ = 0;
};

}  // namespace pelab::client
