// Read-only queries over the public views of a pelab database. The coordinator answers its Results service with them, and
// the CLI reads a file with them when nobody serves it, so both give the same rows, bit for bit. (The one place outside
// server/store that speaks SQL; it knows the views, the sweeps table's public columns, the log and, for speed, where the
// epochs of curves are (docs/adr/0018); never writes.)
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/db/read/job_counts.h"
#include "pelab/v1/results.pb.h"
#include "pelab/v1/sweeps.pb.h"

namespace pelab::db {

inline constexpr int kDefaultPage = 1000;
inline constexpr int kMaxPage = 10000;

// Keeps one read-only connection; every call is one short transaction. Not thread-safe: one a thread.
class Reader {
 public:
  // NotFound: no such file. FailedPrecondition: not a pelab database, or one from a newer version (named), or one that
  // has to be migrated first. Works on a file that a coordinator is writing, and on one that nobody serves (WAL).
  static absl::StatusOr<std::unique_ptr<Reader>> Open(const std::string& path);
  virtual ~Reader() = default;

  // InvalidArgument for an unknown field in a condition (with what is known) or a bad page; NotFound for a sweep or job
  // that is not there.
  virtual absl::StatusOr<v1::ListJobsResponse> ListJobs(const v1::ListJobsRequest& request) = 0;
  virtual absl::StatusOr<v1::ListCurvesResponse> ListCurves(
      const v1::ListCurvesRequest& request) = 0;
  virtual absl::StatusOr<v1::ListEpochsToResponse> ListEpochsTo(
      const v1::ListEpochsToRequest& request) = 0;
  virtual absl::StatusOr<v1::ListHeadAblationsResponse> ListHeadAblations(
      const v1::ListHeadAblationsRequest& request) = 0;
  virtual absl::StatusOr<v1::ListDepositsResponse> ListDeposits(
      const v1::ListDepositsRequest& request) = 0;
  virtual absl::StatusOr<v1::ListAnalysesResponse> ListAnalyses(
      const v1::ListAnalysesRequest& request) = 0;
  virtual absl::StatusOr<v1::ListArtifactsResponse> ListArtifacts(
      const v1::ListArtifactsRequest& request) = 0;
  virtual absl::StatusOr<v1::ListAttemptsResponse> ListAttempts(
      const v1::ListAttemptsRequest& request) = 0;
  virtual absl::StatusOr<v1::ListWorkersResponse> ListWorkers() = 0;
  virtual absl::StatusOr<v1::ListSweepsResponse> ListSweeps(
      const v1::ListSweepsRequest& request) = 0;
  virtual absl::StatusOr<v1::Sweep> GetSweep(const std::string& sweep) = 0;
  // The same without what its jobs do now: reads one row, whatever the sweep's size.
  virtual absl::StatusOr<v1::Sweep> GetSweepRow(const std::string& sweep) = 0;
  // Parts of the kept log at or after `offset`.
  virtual absl::StatusOr<std::vector<v1::LogPart>> ReadLog(const std::string& job, int attempt,
                                                           std::uint64_t offset) = 0;
  // What a sweep with these keys and analyses would find, by key; absent where nothing is stored. Of several generations,
  // the one that v_jobs shows. For `--dry-run`.
  virtual absl::StatusOr<std::map<std::string, StoredJob>> FindKeys(
      const std::vector<std::string>& keys, const std::vector<v1::Analysis>& analyses) = 0;
};

}  // namespace pelab::db
