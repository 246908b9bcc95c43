// Read-only queries over a pelab database. The coordinator answers its Results service with them,
// and the CLI uses them to read a file that nobody serves, so both return the same rows, bit for
// bit (docs/adr/0006). The queries read the public views, some tables behind them (such as sweeps,
// their jobs and their counts, configurations and logs) and, for speed, the tables that hold the
// epochs of curves (docs/adr/0018). They never write.
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
#include "core/db/read/principal_use.h"
#include "pelab/v1/admin.pb.h"
#include "pelab/v1/claims.pb.h"
#include "pelab/v1/results.pb.h"
#include "pelab/v1/sweeps.pb.h"

namespace SQLite {
class Database;
}

namespace pelab::db {

inline constexpr int kDefaultPage = 1000;
inline constexpr int kMaxPage = 10000;

// The lists of rows that can be read from a database file, and in the same form from a coordinator.
// Errors: INVALID_ARGUMENT for an unknown field in a condition (the message lists the known ones)
// or a bad page; NOT_FOUND for a sweep, job or sheet that does not
// exist.
class RowReader {
 public:
  virtual ~RowReader() = default;

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
  virtual absl::StatusOr<v1::ListWorkersResponse> ListWorkers(
      const v1::ListWorkersRequest& request) = 0;
  virtual absl::StatusOr<v1::ListSweepsResponse> ListSweeps(
      const v1::ListSweepsRequest& request) = 0;
  virtual absl::StatusOr<v1::Sweep> GetSweep(const std::string& sweep) = 0;
  // The record of what principals did, in the order in which it was written.
  virtual absl::StatusOr<v1::ListAuditResponse> ListAudit(const v1::ListAuditRequest& request) = 0;
  virtual absl::StatusOr<v1::ListSheetsResponse> ListSheets(
      const v1::ListSheetsRequest& request) = 0;
  virtual absl::StatusOr<v1::Sheet> GetSheet(const v1::GetSheetRequest& request) = 0;
  virtual absl::StatusOr<v1::ListSheetClaimsResponse> ListSheetClaims(
      const v1::ListSheetClaimsRequest& request) = 0;
};

// Reads a file through one read-only connection; every call is one short transaction. Not
// thread-safe: use one Reader per thread.
class Reader : public RowReader {
 public:
  // NOT_FOUND if there is no such file. FAILED_PRECONDITION if it is not a pelab database, comes
  // from a newer version (which the message names), or has to be migrated first. DATA_LOSS if the
  // file is damaged. Works on a file that a coordinator is writing, and on one that nobody serves
  // (WAL).
  static absl::StatusOr<std::unique_ptr<Reader>> Open(const std::string& path);
  // Reads through a connection that the caller has opened, perhaps with a VFS of its own. Does not
  // check whether the file is a pelab database.
  static std::unique_ptr<Reader> Over(std::unique_ptr<SQLite::Database> db);

  // GetSweep without the counts of its jobs: reads one row, whatever the size of the sweep.
  virtual absl::StatusOr<v1::Sweep> GetSweepRow(const std::string& sweep) = 0;
  // The sweeps that have the job: number, name and owner of each. `claimed`: only those that claim
  // it.
  virtual absl::StatusOr<std::vector<v1::Sweep>> SweepsOfJob(std::int64_t job_id, bool claimed) = 0;
  // For each stored principal, by name: its GPU seconds, and how many of its jobs wait and run.
  virtual absl::StatusOr<std::map<std::string, PrincipalUse>> UseOfPrincipals() = 0;
  // The parts of the stored log at or after byte `offset`.
  virtual absl::StatusOr<std::vector<v1::LogPart>> ReadLog(const std::string& job, int attempt,
                                                           std::uint64_t offset) = 0;
  // The stored jobs with these keys, and whether they lack some of these analyses; keys that are
  // not stored are absent. Of a key with several generations, the result has the generation that
  // v_jobs shows. For `--dry-run`, and for the times of jobs that a sheet plans.
  virtual absl::StatusOr<std::map<std::string, StoredJob>> FindKeys(
      const std::vector<std::string>& keys, const std::vector<v1::Analysis>& analyses) = 0;
};

}  // namespace pelab::db
