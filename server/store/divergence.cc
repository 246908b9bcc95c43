#include "server/store/divergence.h"

namespace pelab::store {

void JudgeDivergence(Database& db, std::int64_t job_id) {
  db.Execute(
      "UPDATE jobs SET diverged = coalesce(min(train_loss, test_loss) > (SELECT divergence_loss "
      "FROM configurations AS c WHERE c.configuration_id = jobs.configuration_id), 0) "
      "WHERE job_id = ?",
      job_id);
}

}  // namespace pelab::store
