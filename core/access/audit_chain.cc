#include "core/access/audit_chain.h"

#include <nlohmann/json.hpp>

#include "core/base/sha256.h"

namespace pelab::access {

std::string AuditHash(absl::string_view previous, const v1::AuditRow& row) {
  const nlohmann::json columns = {
      std::string(previous), row.audit_id(), row.at_ms(),   row.principal(), row.peer(),
      row.method(),          row.target(),   row.outcome(), row.count(),     row.trace_id()};
  return Sha256Hex(columns.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
}

}  // namespace pelab::access
