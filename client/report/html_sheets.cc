// The claim sheets that were settled on the report's sweeps.
#include <cstdint>

#include "client/report/html_data.h"
#include "client/terminal/claim_tables.h"
#include "core/claims/metric.h"
#include "core/results/sheet_history.h"

namespace pelab::client::report {

using render::Json;

Json Sheets(const ReportInput& input) {
  Json sheets = Json::array();
  for (const ReportSheet& one : input.sheets) {
    Json sheet = VerdictsJson(one.judged);
    const auto histories = results::SheetHistories(one.rounds);
    for (std::size_t i = 0; i < sheet["claims"].size(); ++i) {
      const auto found = histories.find(static_cast<std::int64_t>(i));
      Json& claim = sheet["claims"][i];
      claim["history"] = found == histories.end() ? Json::array() : found->second;
      claim["fraction"] = claims::IsFraction(claim["metric"].get<std::string>());
    }
    sheet["max_seeds"] = one.judged.sheet.sheet.max_seeds;
    sheets.push_back(std::move(sheet));
  }
  return sheets;
}

}  // namespace pelab::client::report
