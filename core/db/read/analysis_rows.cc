// Head ablations, deposit indices, other analyses, and artifacts.
#include <cstdint>

#include "core/base/strings.h"
#include "core/db/read/job_pages.h"
#include "core/db/read/queries.h"

namespace pelab::db {
namespace {

// The order of matrices and their indices within a job, and a row's place in it.
constexpr char kMatrixOrder[] =
    "coalesce(method, ''), coalesce(hygiene, ''), coalesce(split, ''), target, analysis_id";
template <typename Row>
std::string MatrixPlace(const Row& row) {
  return Concat(PlaceText(row.method()), ":", PlaceText(row.hygiene()), ":", PlaceText(row.split()),
                ":", row.target(), ":", row.analysis_id());
}

}  // namespace

absl::StatusOr<v1::ListHeadAblationsResponse> QueryHeadAblations(
    Connection& db, const v1::ListHeadAblationsRequest& request) {
  return PageOfJobs<v1::ListHeadAblationsResponse>(
      db, request,
      Concat(" FROM v_head_ablation WHERE job_id = ?1 AND (?2 OR (", kMatrixOrder,
             ", layer, head) > (?3, ?4, ?5, ?6, ?7, ?8, ?9)) ORDER BY ", kMatrixOrder,
             ", layer, head"),
      "ttttnnn", [](const v1::HeadAblationRow& row) {
        return Concat(MatrixPlace(row), ":", row.layer(), ":", row.head());
      });
}

absl::StatusOr<v1::ListDepositsResponse> QueryDeposits(Connection& db,
                                                       const v1::ListDepositsRequest& request) {
  return PageOfJobs<v1::ListDepositsResponse>(
      db, request,
      Concat(" FROM v_deposits WHERE job_id = ?1 AND (?2 OR (", kMatrixOrder,
             ", coalesce(layer, -1)) > (?3, ?4, ?5, ?6, ?7, ?8)) AND (NOT ?9 OR layer IS NULL) "
             "ORDER BY ",
             kMatrixOrder, ", coalesce(layer, -1)"),
      "ttttnn",
      [](const v1::DepositRow& row) {
        return Concat(MatrixPlace(row), ":", row.has_layer() ? row.layer() : -1);
      },
      {std::int64_t{request.whole_models()}});
}

absl::StatusOr<v1::ListAnalysesResponse> QueryAnalyses(Connection& db,
                                                       const v1::ListAnalysesRequest& request) {
  return PageOfJobs<v1::ListAnalysesResponse>(
      db, request,
      " FROM v_analyses WHERE job_id = ?1 AND (?2 OR analysis_id > ?3) AND (?4 = '' OR name = ?4) "
      "ORDER BY analysis_id",
      "n", [](const v1::AnalysisRow& row) { return Concat(row.analysis_id()); }, {request.name()});
}

absl::StatusOr<v1::ListArtifactsResponse> QueryArtifacts(Connection& db,
                                                         const v1::ListArtifactsRequest& request) {
  return PageOfJobs<v1::ListArtifactsResponse>(
      db, request, " FROM v_artifacts WHERE job_id = ?1 AND (?2 OR name > ?3) ORDER BY name", "t",
      [](const v1::ArtifactRow& row) { return PlaceText(row.name()); });
}

}  // namespace pelab::db
