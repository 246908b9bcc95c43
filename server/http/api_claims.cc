// The JSON API: claim sheets that are settled on a sweep.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "core/base/strings.h"
#include "core/db/read/all_rows.h"
#include "core/results/rows.h"
#include "core/results/sheet_history.h"
#include "server/http/api.h"

namespace pelab::http {
namespace {

using render::Json;

// The sheet's claims after its last round that has ended.
absl::StatusOr<Json> ClaimsOf(db::Reader& reader, const Sources& sources, std::int64_t sheet) {
  v1::ListSheetClaimsRequest request;
  request.mutable_sheet()->set_sheet(Concat(sheet));
  PELAB_ASSIGN_OR_RETURN(const auto rows, db::AllRows<v1::SheetClaimRow>(
                                              reader, &db::RowReader::ListSheetClaims, request));
  std::vector<claims::Summary> summaries;
  if (sources.summaries && !rows.empty()) {
    auto found = sources.summaries(reader, sheet);
    // The verdicts are shown even if this version of pelab cannot read the sheet.
    if (!found.ok() && !absl::IsFailedPrecondition(found.status())) return found.status();
    if (found.ok()) summaries = *std::move(found);
  }
  const auto histories = results::SheetHistories(rows);
  Json all = Json::array();
  for (const v1::SheetClaimRow& row : rows) {
    if (row.round() != rows.back().round()) continue;
    Json claim = results::ToJson(row);
    claim["e_holds"] = std::exp(row.log_e_holds());
    claim["e_fails"] = std::exp(row.log_e_fails());
    claim["threshold"] = std::exp(row.log_threshold());
    const auto history = histories.find(row.position());
    claim["history"] = history == histories.end() ? Json::array() : history->second;
    if (const auto at = static_cast<std::size_t>(row.position()); at < summaries.size()) {
      claim.update(claims::ToJson(summaries[at]));
    }
    all.push_back(std::move(claim));
  }
  return all;
}

}  // namespace

absl::StatusOr<Json> Api::Claims(const std::string& id, const Query&) {
  PELAB_ASSIGN_OR_RETURN(const v1::Sweep sweep, reader_.GetSweepRow(id));
  PELAB_ASSIGN_OR_RETURN(
      const auto rows,
      db::AllRows<v1::SheetRow>(reader_, &db::RowReader::ListSheets, v1::ListSheetsRequest()));
  Json sheets = Json::array();
  for (const v1::SheetRow& row : rows) {
    if (!row.has_sweep_id() || row.sweep_id() != sweep.sweep_id()) continue;
    Json sheet = results::ToJson(row);
    sheet.erase("document");  // lists have no documents
    sheet.erase("sweep_document");
    PELAB_ASSIGN_OR_RETURN(sheet["claims"], ClaimsOf(reader_, sources_, row.sheet_id()));
    sheets.push_back(std::move(sheet));
  }
  return Json{{"sheets", std::move(sheets)}};
}

absl::StatusOr<Json> Api::Seeds(const std::string& id, const Query& query) {
  PELAB_ASSIGN_OR_RETURN(const v1::Sweep sweep, reader_.GetSweepRow(id));
  if (!query.has("sheet") || !query.has("claim")) {
    return absl::InvalidArgumentError("sheet= (its number) and claim= (its id) are needed");
  }
  PELAB_ASSIGN_OR_RETURN(const std::int64_t number, query.Number("sheet", 0, 1, INT64_MAX));
  v1::GetSheetRequest which;
  which.mutable_sheet()->set_sheet(Concat(number));
  PELAB_ASSIGN_OR_RETURN(const v1::Sheet sheet, reader_.GetSheet(which));
  if (!sheet.row().has_sweep_id() || sheet.row().sweep_id() != sweep.sweep_id()) {
    return absl::NotFoundError(
        Concat("sheet ", number, " is not settled on sweep ", sweep.sweep_id()));
  }
  if (!sources_.seeds) return absl::NotFoundError("claims cannot be read here");
  return sources_.seeds(reader_, number, query.Text("claim"));
}

}  // namespace pelab::http
