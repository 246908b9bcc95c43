// Rows of the audit table, and what principals use.
#include <cstdint>
#include <map>
#include <string>

#include "core/base/strings.h"
#include "core/db/raw_statement.h"
#include "core/db/read/filter.h"
#include "core/db/read/queries.h"
#include "core/db/row_columns.h"

namespace pelab::db {

absl::StatusOr<v1::ListAuditResponse> QueryAudit(SQLite::Database& db,
                                                 const v1::ListAuditRequest& request) {
  const absl::StatusOr<int> limit = PageLimit(request.page());
  if (!limit.ok()) return limit.status();
  std::int64_t after = 0;
  if (!request.page().after().empty() && !ParseNumber(request.page().after(), &after)) {
    return absl::InvalidArgumentError(
        Concat("page position \"", request.page().after(), "\" is not one of an answer"));
  }
  const RowColumns& columns = ColumnsOf<v1::AuditRow>();
  RawStatement query(db, Concat("SELECT ", columns.sql(),
                                " FROM v_audit WHERE audit_id > ?1 AND at_ms >= ?2 AND "
                                "(?3 = '' OR principal = ?3) ORDER BY audit_id LIMIT ?4"));
  query.Bind(1, after);
  query.Bind(2, request.since_ms());
  query.Bind(3, request.principal());
  query.Bind(4, std::int64_t{*limit} + 1);
  v1::ListAuditResponse response;
  std::size_t text_bytes = 0;
  while (query.Step()) {
    if (response.rows_size() == *limit || text_bytes >= kMaxTextBytes) {
      response.set_next(Concat(response.rows().rbegin()->audit_id()));
      break;
    }
    text_bytes += columns.Read(query, *response.add_rows());
  }
  return response;
}

std::map<std::string, PrincipalUse> QueryUseOfPrincipals(SQLite::Database& db) {
  RawStatement query(
      db,
      "SELECT p.name, p.gpu_seconds_used, coalesce(sum(n.queued), 0), "
      "coalesce(sum(n.assigned + n.running), 0) FROM principals AS p "
      "LEFT JOIN sweeps AS s ON s.owner = p.name AND s.owner <> '' AND "
      "s.state IN ('expanding', 'active') LEFT JOIN sweep_counts AS n USING (sweep_id) "
      "GROUP BY p.name");
  std::map<std::string, PrincipalUse> uses;
  while (query.Step()) {
    uses[std::string(query.Text(0))] = {.gpu_seconds = query.Real(1),
                                        .queued = query.Integer(2),
                                        .running = query.Integer(3)};
  }
  return uses;
}

}  // namespace pelab::db
