// Reads everything that a database holds of its finished jobs, so that another database can import
// them, and computes the hash that decides whether two curves are equal. Reads tables, not only the
// views, because an import copies the data from which the views are derived.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/base/sha256.h"
#include "pelab/v1/transfer.pb.h"

namespace pelab::db {

// The fingerprint of a curve: SHA-256 over every epoch's fields in the order of v1::Epoch (its
// number, losses as bits, counts and learning rate), 8 bytes each, little-endian. The seconds of an
// epoch are left out, because a bit-for-bit repetition of a job takes different times.
class CurveHash {
 public:
  void Add(const v1::Epoch& epoch);
  std::string FinishHex() { return hash_.FinishHex(); }

 private:
  Sha256 hash_;
};

struct FinishedJob {
  std::int64_t job_id = 0;
  std::string key;
};

// A finished job in the form in which it is sent.
struct ExportedJob {
  v1::ImportedJob job;
  std::vector<v1::Epoch> epochs;
  std::vector<v1::ImportedAnalysis> analyses;
  std::vector<v1::ImportedFile> files;
  int left_out = 0;  // number of matrices of version 1, which can no longer be stored
};

struct ExportedSweep {
  std::int64_t sweep_id = 0;
  v1::ImportedSweep sweep;
};

// Every call is one read transaction; the database may be served meanwhile. One thread at a time.
class ImportReader {
 public:
  virtual ~ImportReader() = default;
  // The errors are those of Reader::Open.
  static absl::StatusOr<std::unique_ptr<ImportReader>> Open(const std::string& path);

  // The trained jobs, by number: of each key, the generation that v_jobs shows. `others` receives
  // how many other jobs v_jobs has.
  virtual absl::StatusOr<std::vector<FinishedJob>> Finished(std::int64_t* others) = 0;
  virtual absl::StatusOr<std::string> HashOfCurve(std::int64_t job_id) = 0;
  virtual absl::StatusOr<ExportedJob> ReadJob(std::int64_t job_id) = 0;
  // The path of a file of ReadJob(job_id); nullopt if no file can have this name.
  virtual std::optional<std::string> PathOf(std::int64_t job_id, const v1::ImportedFile& file) = 0;
  // The sweeps that were fully expanded, oldest first.
  virtual absl::StatusOr<std::vector<ExportedSweep>> Sweeps() = 0;
  // The sweep's job cells from ordinal `from` on, at most `limit`.
  virtual absl::StatusOr<v1::ImportedCells> Cells(std::int64_t sweep_id, std::uint64_t from,
                                                  int limit) = 0;
  // For each key of the request: whether this database lacks it, has the same curve, has a
  // different curve, or is still working on the job.
  virtual absl::StatusOr<std::vector<v1::ImportVerdict>> Check(
      const v1::CheckImportRequest& request) = 0;
};

}  // namespace pelab::db
