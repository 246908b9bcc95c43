// What principals use.
#include <cstdint>
#include <map>
#include <string>

#include "core/db/raw_statement.h"
#include "core/db/read/queries.h"

namespace pelab::db {

std::map<std::string, PrincipalUse> QueryUseOfPrincipals(Connection& db) {
  RawStatement query(
      db,
      "SELECT p.name, p.gpu_seconds_used, coalesce(sum(n.queued), 0), "
      "coalesce(sum(n.assigned + n.running), 0) FROM principals AS p "
      "LEFT JOIN sweeps AS s ON s.owner = p.name AND s.owner <> '' AND "
      "s.state IN ('expanding', 'active') LEFT JOIN sweep_counts AS n USING (sweep_id) "
      "GROUP BY p.name");
  std::map<std::string, PrincipalUse> uses;
  while (query.Step()) {
    uses[std::string(query.Text(0))] = {
        .gpu_seconds = query.Real(1), .queued = query.Integer(2), .running = query.Integer(3)};
  }
  return uses;
}

}  // namespace pelab::db
