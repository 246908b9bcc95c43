#include "core/results/sheet_history.h"

#include <algorithm>
#include <numbers>

namespace pelab::results {

std::map<std::int64_t, render::Json> SheetHistories(const std::vector<v1::SheetClaimRow>& rows) {
  std::map<std::int64_t, render::Json> histories;
  std::map<std::int64_t, std::int64_t> seeds;
  for (const v1::SheetClaimRow& row : rows) {
    // A claim that gets no more seeds keeps its e-values in the rounds that follow.
    std::int64_t& last = seeds[row.position()];
    if (row.seeds() == last) continue;
    last = row.seeds();
    const double log_e = std::max(row.log_e_holds(), row.log_e_fails());
    histories.try_emplace(row.position(), render::Json::array())
        .first->second.push_back({row.seeds(), log_e / std::numbers::ln10});
  }
  return histories;
}

}  // namespace pelab::results
