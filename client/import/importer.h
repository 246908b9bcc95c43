// `pelab import`: another database's finished jobs, by key, into the one that is served.
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

// What came of an import, or would come of it.
struct ImportReport {
  std::uint64_t imported = 0;          // jobs that were not here
  std::uint64_t present = 0;           // trained here already, with the same curve
  std::uint64_t in_flight = 0;         // being trained here: left to that
  std::uint64_t unfinished = 0;        // not trained there
  std::vector<std::string> different;  // keys that have another curve here; nothing is overwritten
  std::uint64_t files = 0;
  std::uint64_t file_bytes = 0;
  std::vector<std::string>
      missing_files;               // that are not there, or damaged: their jobs came without
  std::uint64_t old_matrices = 0;  // of version 1, left out
  std::uint64_t sweeps = 0;        // that are whole here now and were not
  std::vector<std::string> partial_sweeps;  // kept as cancelled
};

class Importer {
 public:
  // `path` is the other database. The errors of TransferReader::Open; of an older schema it says
  // what to do.
  static absl::StatusOr<std::unique_ptr<Importer>> Open(const std::string& path, bool with_files);

  // How the keys of a request stand where they are to go: CheckImport of a coordinator, or of a file.
  using Check =
      std::function<absl::StatusOr<v1::CheckImportResponse>(const v1::CheckImportRequest&)>;

  // What an import would do; sweeps are not looked at.
  absl::StatusOr<ImportReport> Preview(const Check& check);
  // Job by job, each stored and acknowledged before the next. `stopped` is asked between them;
  // CANCELLED. Repeating it goes on where the last one ended. `progress` is told now and then how
  // many of how many jobs are done.
  absl::StatusOr<ImportReport> Run(
      Coordinator& coordinator, const std::function<bool()>& stopped,
      const std::function<void(std::uint64_t done, std::uint64_t all)>& progress);

 private:
  Importer(std::string path, std::unique_ptr<db::TransferReader> reader, bool with_files)
      : path_(std::move(path)), reader_(std::move(reader)), with_files_(with_files) {}

  // Asks for all jobs, some at a time; `use(job) -> Status` gets those that are new.
  template <typename Use>
  absl::Status ForEachNew(const Check& check, ImportReport& report, const Use& use);
  absl::Status SendJob(const db::TransferJob& job,
                       const std::function<absl::Status(const v1::ImportJobPart&)>& write,
                       ImportReport& report);
  absl::Status SendFile(const v1::ImportedFile& file,
                        const std::function<absl::Status(const v1::ImportJobPart&)>& write,
                        ImportReport& report);
  absl::Status SendSweeps(Coordinator& coordinator, const std::function<bool()>& stopped,
                          ImportReport& report);

  const std::string path_;
  const std::unique_ptr<db::TransferReader> reader_;
  const bool with_files_;
  std::uint64_t jobs_ = 0;
};

}  // namespace pelab::client
