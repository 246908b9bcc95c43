// What a database holds of its finished jobs, whole, so that another can take them over; and what
// makes two curves the same. Reads tables beside the views: an import copies what views derive.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/base/sha256.h"
#include "pelab/v1/transfer.pb.h"

namespace pelab::db {

// A fingerprint of a curve: SHA-256 over every epoch's number, losses (bits), counts and learning
// rate, little-endian. The seconds that an epoch took are left out: a job that repeats bit for bit
// takes other times.
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

// A job as it is sent.
struct TransferJob {
  v1::ImportedJob job;
  std::vector<v1::Epoch> epochs;
  std::vector<v1::ImportedAnalysis> analyses;
  std::vector<v1::ImportedFile> files;
  int left_out = 0;  // matrices of version 1, which no longer can be stored
};

struct TransferSweep {
  std::int64_t sweep_id = 0;
  v1::ImportedSweep sweep;
};

// One read transaction a call: it may be served meanwhile. One thread at a time.
class TransferReader {
 public:
  virtual ~TransferReader() = default;
  // The errors of Reader::Open.
  static absl::StatusOr<std::unique_ptr<TransferReader>> Open(const std::string& path);

  // Trained jobs, of each key the generation that counts, by number; and how many others there are.
  virtual absl::StatusOr<std::vector<FinishedJob>> Finished(std::int64_t* others) = 0;
  virtual absl::StatusOr<std::string> HashOfCurve(std::int64_t job_id) = 0;
  virtual absl::StatusOr<TransferJob> ReadJob(std::int64_t job_id) = 0;
  // Sweeps that were expanded whole, the oldest first.
  virtual absl::StatusOr<std::vector<TransferSweep>> Sweeps() = 0;
  // The sweep's cells from ordinal `from` on, at most `limit`.
  virtual absl::StatusOr<v1::ImportedCells> Cells(std::int64_t sweep_id, std::uint64_t from,
                                                  int limit) = 0;
  // How each key stands in this database.
  virtual absl::StatusOr<std::vector<v1::ImportVerdict>> Check(
      const v1::CheckImportRequest& request) = 0;
};

}  // namespace pelab::db
