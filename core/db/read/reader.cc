#include "core/db/read/reader.h"

#include <cstdint>
#include <utility>

#include "core/db/connection.h"
#include "core/db/read/queries.h"

namespace pelab::db {
namespace {

class SqliteReader final : public Reader {
 public:
  explicit SqliteReader(std::unique_ptr<Connection> connection)
      : connection_(std::move(connection)) {}

  absl::StatusOr<v1::ListJobsResponse> ListJobs(const v1::ListJobsRequest& request) override {
    return connection_->Read([&](auto& db) { return QueryJobs(db, request); });
  }
  absl::StatusOr<v1::ListCurvesResponse> ListCurves(const v1::ListCurvesRequest& request) override {
    return connection_->Read([&](auto& db) { return QueryCurves(db, request); });
  }
  absl::StatusOr<v1::ListEpochsToResponse> ListEpochsTo(
      const v1::ListEpochsToRequest& request) override {
    return connection_->Read([&](auto& db) { return QueryEpochsTo(db, request); });
  }
  absl::StatusOr<v1::ListHeadAblationsResponse> ListHeadAblations(
      const v1::ListHeadAblationsRequest& request) override {
    return connection_->Read([&](auto& db) { return QueryHeadAblations(db, request); });
  }
  absl::StatusOr<v1::ListDepositsResponse> ListDeposits(
      const v1::ListDepositsRequest& request) override {
    return connection_->Read([&](auto& db) { return QueryDeposits(db, request); });
  }
  absl::StatusOr<v1::ListAnalysesResponse> ListAnalyses(
      const v1::ListAnalysesRequest& request) override {
    return connection_->Read([&](auto& db) { return QueryAnalyses(db, request); });
  }
  absl::StatusOr<v1::ListArtifactsResponse> ListArtifacts(
      const v1::ListArtifactsRequest& request) override {
    return connection_->Read([&](auto& db) { return QueryArtifacts(db, request); });
  }
  absl::StatusOr<v1::ListAttemptsResponse> ListAttempts(
      const v1::ListAttemptsRequest& request) override {
    return connection_->Read([&](auto& db) { return QueryAttempts(db, request); });
  }
  absl::StatusOr<v1::ListWorkersResponse> ListWorkers(
      const v1::ListWorkersRequest& request) override {
    return connection_->Read([&](auto& db) { return QueryWorkers(db, request); });
  }
  absl::StatusOr<v1::ListSweepsResponse> ListSweeps(const v1::ListSweepsRequest& request) override {
    return connection_->Read([&](auto& db) { return QuerySweeps(db, request); });
  }
  absl::StatusOr<v1::Sweep> GetSweep(const std::string& sweep) override {
    return connection_->Read([&](auto& db) { return QuerySweep(db, sweep, /*with_jobs=*/true); });
  }
  absl::StatusOr<v1::ListAuditResponse> ListAudit(const v1::ListAuditRequest& request) override {
    return connection_->Read([&](auto& db) { return QueryAudit(db, request); });
  }
  absl::StatusOr<v1::ListSheetsResponse> ListSheets(const v1::ListSheetsRequest& request) override {
    return connection_->Read([&](auto& db) { return QuerySheets(db, request); });
  }
  absl::StatusOr<v1::Sheet> GetSheet(const v1::GetSheetRequest& request) override {
    return connection_->Read([&](auto& db) { return QuerySheet(db, request); });
  }
  absl::StatusOr<v1::ListSheetClaimsResponse> ListSheetClaims(
      const v1::ListSheetClaimsRequest& request) override {
    return connection_->Read([&](auto& db) { return QuerySheetClaims(db, request); });
  }
  absl::StatusOr<v1::Sweep> GetSweepRow(const std::string& sweep) override {
    return connection_->Read([&](auto& db) { return QuerySweep(db, sweep, /*with_jobs=*/false); });
  }
  absl::StatusOr<std::vector<v1::Sweep>> SweepsOfJob(std::int64_t job_id, bool claimed) override {
    return connection_->Read([&](auto& db) -> absl::StatusOr<std::vector<v1::Sweep>> {
      return QuerySweepsOfJob(db, job_id, claimed);
    });
  }
  absl::StatusOr<std::map<std::string, PrincipalUse>> UseOfPrincipals() override {
    return connection_->Read([&](auto& db) -> absl::StatusOr<std::map<std::string, PrincipalUse>> {
      return QueryUseOfPrincipals(db);
    });
  }
  absl::StatusOr<std::vector<v1::LogPart>> ReadLog(const std::string& job, int attempt,
                                                   std::uint64_t offset) override {
    return connection_->Read([&](auto& db) { return QueryLog(db, job, attempt, offset); });
  }
  absl::StatusOr<std::map<std::string, StoredJob>> FindKeys(
      const std::vector<std::string>& keys, const std::vector<v1::Analysis>& analyses) override {
    return connection_->Read([&](auto& db) -> absl::StatusOr<std::map<std::string, StoredJob>> {
      return QueryKeys(db, keys, analyses);
    });
  }

 private:
  std::unique_ptr<Connection> connection_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Reader>> Reader::Open(const std::string& path) {
  absl::StatusOr<std::unique_ptr<Connection>> connection = Connection::Open(path);
  if (!connection.ok()) return connection.status();
  return std::make_unique<SqliteReader>(*std::move(connection));
}

std::unique_ptr<Reader> Reader::Over(std::unique_ptr<SQLite::Database> db) {
  return std::make_unique<SqliteReader>(Connection::Over(std::move(db)));
}

}  // namespace pelab::db
