// The queries behind Reader, one function each. Internal to core/db; call inside Connection::Read.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/db/connection.h"
#include "core/db/read/job_counts.h"
#include "core/db/read/principal_use.h"
#include "pelab/v1/admin.pb.h"
#include "pelab/v1/claims.pb.h"
#include "pelab/v1/results.pb.h"
#include "pelab/v1/sweeps.pb.h"

namespace pelab::db {

// job_rows.cc
absl::StatusOr<v1::ListJobsResponse> QueryJobs(Connection& db, const v1::ListJobsRequest& request);
std::map<std::string, StoredJob> QueryKeys(Connection& db, const std::vector<std::string>& keys,
                                           const std::vector<v1::Analysis>& analyses);

// curve_rows.cc
absl::StatusOr<v1::ListCurvesResponse> QueryCurves(Connection& db,
                                                   const v1::ListCurvesRequest& request);

absl::StatusOr<v1::ListEpochsToResponse> QueryEpochsTo(Connection& db,
                                                       const v1::ListEpochsToRequest& request);

// analysis_rows.cc
absl::StatusOr<v1::ListHeadAblationsResponse> QueryHeadAblations(
    Connection& db, const v1::ListHeadAblationsRequest& request);
absl::StatusOr<v1::ListDepositsResponse> QueryDeposits(Connection& db,
                                                       const v1::ListDepositsRequest& request);
absl::StatusOr<v1::ListAnalysesResponse> QueryAnalyses(Connection& db,
                                                       const v1::ListAnalysesRequest& request);
absl::StatusOr<v1::ListArtifactsResponse> QueryArtifacts(Connection& db,
                                                         const v1::ListArtifactsRequest& request);

// sweep_rows.cc
absl::StatusOr<v1::ListSweepsResponse> QuerySweeps(Connection& db,
                                                   const v1::ListSweepsRequest& request);
absl::StatusOr<v1::Sweep> QuerySweep(Connection& db, const std::string& sweep, bool with_jobs);
std::vector<v1::Sweep> QuerySweepsOfJob(Connection& db, std::int64_t job_id, bool claimed);
absl::StatusOr<v1::ListAttemptsResponse> QueryAttempts(Connection& db,
                                                       const v1::ListAttemptsRequest& request);
absl::StatusOr<v1::ListWorkersResponse> QueryWorkers(Connection& db,
                                                     const v1::ListWorkersRequest& request);
absl::StatusOr<std::vector<v1::LogPart>> QueryLog(Connection& db, const std::string& job,
                                                  int attempt, std::uint64_t offset);

// audit_rows.cc
absl::StatusOr<v1::ListAuditResponse> QueryAudit(Connection& db,
                                                 const v1::ListAuditRequest& request);

// sheet_rows.cc
absl::StatusOr<v1::ListSheetsResponse> QuerySheets(Connection& db,
                                                   const v1::ListSheetsRequest& request);
absl::StatusOr<v1::Sheet> QuerySheet(Connection& db, const v1::GetSheetRequest& request);
absl::StatusOr<v1::ListSheetClaimsResponse> QuerySheetClaims(
    Connection& db, const v1::ListSheetClaimsRequest& request);

// access_rows.cc
std::map<std::string, PrincipalUse> QueryUseOfPrincipals(Connection& db);

}  // namespace pelab::db
