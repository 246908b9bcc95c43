// Curves and artifacts.
#include <cstdint>

#include "core/views/job_pages.h"
#include "core/views/queries.h"
#include "core/views/text.h"

namespace pelab::views {
namespace {

v1::CurveRow ReadCurve(SQLite::Statement& query) {
  v1::CurveRow row;
  int i = 0;
  row.set_job_id(query.getColumn(i++).getInt64());
  row.set_epoch(query.getColumn(i++).getInt());
  row.set_train_loss(query.getColumn(i++).getDouble());
  row.set_train_accuracy(query.getColumn(i++).getDouble());
  row.set_test_loss(query.getColumn(i++).getDouble());
  row.set_test_accuracy(query.getColumn(i++).getDouble());
  row.set_learning_rate(query.getColumn(i++).getDouble());
  row.set_seconds(query.getColumn(i++).getDouble());
  row.set_train_correct(query.getColumn(i++).getInt64());
  row.set_train_total(query.getColumn(i++).getInt64());
  row.set_test_correct(query.getColumn(i++).getInt64());
  row.set_test_total(query.getColumn(i++).getInt64());
  return row;
}

v1::ArtifactRow ReadArtifact(SQLite::Statement& query) {
  v1::ArtifactRow row;
  row.set_job_id(query.getColumn(0).getInt64());
  row.set_name(query.getColumn(1).getString());
  row.set_sha256(query.getColumn(2).getString());
  row.set_bytes(static_cast<std::uint64_t>(query.getColumn(3).getInt64()));
  return row;
}

}  // namespace

absl::StatusOr<v1::ListCurvesResponse> QueryCurves(SQLite::Database& db,
                                                   const v1::ListCurvesRequest& request) {
  return PageOfJobs<v1::ListCurvesResponse>(
      db, request,
      "SELECT job_id, epoch, train_loss, train_accuracy, test_loss, test_accuracy, learning_rate, "
      "seconds, train_correct, train_total, test_correct, test_total FROM v_curves "
      "WHERE job_id = ?1 AND (?2 OR epoch > ?3) ORDER BY epoch",
      "n", ReadCurve, [](const v1::CurveRow& row) { return Concat(row.epoch()); });
}

absl::StatusOr<v1::ListArtifactsResponse> QueryArtifacts(SQLite::Database& db,
                                                         const v1::ListArtifactsRequest& request) {
  return PageOfJobs<v1::ListArtifactsResponse>(
      db, request,
      "SELECT job_id, name, sha256, bytes FROM v_artifacts "
      "WHERE job_id = ?1 AND (?2 OR name > ?3) ORDER BY name",
      "t", ReadArtifact, [](const v1::ArtifactRow& row) { return row.name(); });
}

}  // namespace pelab::views
