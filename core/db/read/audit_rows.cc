// The record of what principals did.
#include <cstdint>

#include "core/base/strings.h"
#include "core/db/raw_statement.h"
#include "core/db/read/filter.h"
#include "core/db/read/queries.h"
#include "core/db/row_columns.h"

namespace pelab::db {
namespace {

// The row after which the first page begins. The rows are in the order in which they were written,
// also if the clock was set back meanwhile: rows before `since_ms` may follow, and are left out.
std::int64_t RowBefore(Connection& db, std::int64_t since_ms) {
  if (since_ms <= 0) return 0;
  RawStatement query(db, "SELECT coalesce(min(audit_id) - 1, ?2) FROM v_audit WHERE at_ms >= ?1");
  query.Bind(1, since_ms);
  query.Bind(2, INT64_MAX);  // there is none
  query.Step();
  return query.Integer(0);
}

}  // namespace

absl::StatusOr<v1::ListAuditResponse> QueryAudit(Connection& db,
                                                 const v1::ListAuditRequest& request) {
  const absl::StatusOr<int> limit = PageLimit(request.page());
  if (!limit.ok()) return limit.status();
  const std::string& place = request.page().after();
  std::int64_t after = 0;
  if (place.empty()) {
    after = RowBefore(db, request.since_ms());
  } else if (!ParseNumber(place, &after)) {
    return absl::InvalidArgumentError(
        Concat("page position \"", place, "\" is not one of an answer"));
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

}  // namespace pelab::db
