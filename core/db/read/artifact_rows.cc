// Rows of artifacts.
#include <cstdint>

#include "core/base/strings.h"
#include "core/db/read/job_pages.h"
#include "core/db/read/queries.h"

namespace pelab::db {
namespace {

v1::ArtifactRow ReadArtifact(SQLite::Statement& query) {
  v1::ArtifactRow row;
  row.set_job_id(query.getColumn(0).getInt64());
  row.set_name(query.getColumn(1).getString());
  row.set_sha256(query.getColumn(2).getString());
  row.set_bytes(static_cast<std::uint64_t>(query.getColumn(3).getInt64()));
  return row;
}

}  // namespace

absl::StatusOr<v1::ListArtifactsResponse> QueryArtifacts(SQLite::Database& db,
                                                         const v1::ListArtifactsRequest& request) {
  return PageOfJobs<v1::ListArtifactsResponse>(
      db, request,
      "SELECT job_id, name, sha256, bytes FROM v_artifacts "
      "WHERE job_id = ?1 AND (?2 OR name > ?3) ORDER BY name",
      "t", ReadArtifact, [](const v1::ArtifactRow& row) { return row.name(); });
}

}  // namespace pelab::db
