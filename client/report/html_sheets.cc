// The claim sheets that were settled on the report's sweeps.
#include <cmath>
#include <map>
#include <numbers>
#include <vector>

#include "client/report/html_data.h"
#include "client/terminal/claim_tables.h"

namespace pelab::client::report {
namespace {

using render::Json;

// The larger of the claim's two e-values after each round, by position: [[seeds, log10 e], …].
std::map<std::int64_t, Json> Histories(const std::vector<v1::SheetClaimRow>& rounds) {
  std::map<std::int64_t, Json> histories;
  std::map<std::int64_t, std::int64_t> seeds;
  for (const v1::SheetClaimRow& row : rounds) {
    // A claim that gets no more seeds keeps its e-values in the rounds that follow.
    std::int64_t& last = seeds[row.position()];
    if (row.seeds() == last) continue;
    last = row.seeds();
    const double log_e = std::max(row.log_e_holds(), row.log_e_fails());
    histories.try_emplace(row.position(), Json::array())
        .first->second.push_back({row.seeds(), log_e / std::numbers::ln10});
  }
  return histories;
}

}  // namespace

Json Sheets(const ReportInput& input) {
  Json sheets = Json::array();
  for (const ReportSheet& one : input.sheets) {
    Json sheet = VerdictsJson(one.judged);
    const auto histories = Histories(one.rounds);
    for (std::size_t i = 0; i < sheet["claims"].size(); ++i) {
      const auto found = histories.find(static_cast<std::int64_t>(i));
      sheet["claims"][i]["history"] = found == histories.end() ? Json::array() : found->second;
    }
    sheet["max_seeds"] = one.judged.sheet.sheet.max_seeds;
    sheets.push_back(std::move(sheet));
  }
  return sheets;
}

}  // namespace pelab::client::report
