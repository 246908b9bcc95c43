// Rows of claim sheets, of their rounds and of what their claims have come to.
#include <cstdint>
#include <set>
#include <string>

#include "core/base/strings.h"
#include "core/db/read/filter.h"
#include "core/db/read/queries.h"
#include "core/db/row_columns.h"

namespace pelab::db {
namespace {

constexpr std::size_t kFewestDigits = 6;  // of a hash that names a sheet
constexpr std::size_t kShown = 100;       // bytes of a name in a message

const RowColumns& ListedColumns() {
  static const auto& columns =
      *new RowColumns(v1::SheetRow::descriptor(), {"document", "sweep_document"});
  return columns;
}

std::optional<std::int64_t> FirstOf(RawStatement& query) {
  if (!query.Step()) return std::nullopt;
  return query.Integer(0);
}

absl::StatusOr<std::int64_t> FindSheet(Connection& db, const std::string& sheet) {
  std::int64_t number = 0;
  if (ParseNumber(sheet, &number)) {
    RawStatement query(db, "SELECT sheet_id FROM v_sheets WHERE sheet_id = ?");
    query.Bind(1, number);
    if (const auto found = FirstOf(query)) return *found;
  }
  {
    RawStatement query(
        db, "SELECT sheet_id FROM v_sheets WHERE name = ? ORDER BY sheet_id DESC LIMIT 1");
    query.Bind(1, sheet);
    if (const auto found = FirstOf(query)) return *found;
  }
  const bool digits = sheet.size() >= kFewestDigits && sheet.size() <= 64 &&
                      sheet.find_first_not_of("0123456789abcdef") == std::string::npos;
  if (digits) {
    RawStatement query(db,
                       "SELECT sheet_id FROM v_sheets WHERE substr(sha256, 1, length(?1)) = ?1 "
                       "ORDER BY sheet_id DESC LIMIT 1");
    query.Bind(1, sheet);
    if (const auto found = FirstOf(query)) return *found;
  }
  return absl::NotFoundError(Concat("no sheet \"", Shorten(Escape(sheet), kShown),
                                    "\" is registered; pelab claims list shows those that are"));
}

// The place after which a page begins, "3:17" for round and position.
struct ClaimPlace {
  std::int64_t round = -1;
  std::int64_t position = -1;
};
absl::StatusOr<ClaimPlace> ParseClaimPlace(const std::string& text) {
  ClaimPlace place;
  if (text.empty()) return place;
  const std::size_t colon = text.find(':');
  if (colon == std::string::npos || !ParseNumber(text.substr(0, colon), &place.round) ||
      !ParseNumber(text.substr(colon + 1), &place.position)) {
    return absl::InvalidArgumentError(
        Concat("page position \"", Shorten(Escape(text), kShown), "\" is not one of an answer"));
  }
  return place;
}

}  // namespace

absl::StatusOr<v1::ListSheetsResponse> QuerySheets(Connection& db,
                                                   const v1::ListSheetsRequest& request) {
  absl::StatusOr<int> limit = PageLimit(request.page());
  if (!limit.ok()) return limit.status();
  std::int64_t before = INT64_MAX;
  if (!request.page().after().empty() && !ParseNumber(request.page().after(), &before)) {
    return absl::InvalidArgumentError(Concat("page position \"",
                                             Shorten(Escape(request.page().after()), kShown),
                                             "\" is not one of an answer"));
  }
  RawStatement query(db,
                     Concat("SELECT ", ListedColumns().sql(),
                            " FROM v_sheets WHERE sheet_id < ? ORDER BY sheet_id DESC LIMIT ?"));
  query.Bind(1, before);
  query.Bind(2, std::int64_t{*limit} + 1);
  v1::ListSheetsResponse response;
  std::size_t text_bytes = 0;
  while (query.Step()) {
    if (response.rows_size() == *limit || text_bytes >= kMaxTextBytes) {
      response.set_next(Concat(response.rows().rbegin()->sheet_id()));
      break;
    }
    text_bytes += ListedColumns().Read(query, *response.add_rows());
  }
  return response;
}

absl::StatusOr<v1::Sheet> QuerySheet(Connection& db, const v1::GetSheetRequest& request) {
  absl::StatusOr<std::int64_t> id = FindSheet(db, request.sheet().sheet());
  if (!id.ok()) return id.status();
  v1::Sheet sheet;
  const RowColumns& columns = ColumnsOf<v1::SheetRow>();
  RawStatement query(db, Concat("SELECT ", columns.sql(), " FROM v_sheets WHERE sheet_id = ?"));
  query.Bind(1, *id);
  query.Step();
  columns.Read(query, *sheet.mutable_row());
  const RowColumns& of_round = ColumnsOf<v1::SheetRoundRow>();
  RawStatement rounds(db, Concat("SELECT ", of_round.sql(),
                                 " FROM v_sheet_rounds WHERE sheet_id = ? ORDER BY round"));
  rounds.Bind(1, *id);
  while (rounds.Step()) of_round.Read(rounds, *sheet.add_rounds());
  return sheet;
}

absl::StatusOr<v1::ListSheetClaimsResponse> QuerySheetClaims(
    Connection& db, const v1::ListSheetClaimsRequest& request) {
  absl::StatusOr<int> limit = PageLimit(request.page());
  if (!limit.ok()) return limit.status();
  absl::StatusOr<ClaimPlace> after = ParseClaimPlace(request.page().after());
  if (!after.ok()) return after.status();
  absl::StatusOr<std::int64_t> id = FindSheet(db, request.sheet().sheet());
  if (!id.ok()) return id.status();
  const RowColumns& columns = ColumnsOf<v1::SheetClaimRow>();
  RawStatement query(
      db, Concat("SELECT ", columns.sql(),
                 " FROM v_sheet_claims WHERE sheet_id = ?1 AND (round, position) > (?2, ?3) AND "
                 "(NOT ?4 OR round = (SELECT max(round) FROM v_sheet_claims WHERE sheet_id = ?1)) "
                 "ORDER BY round, position LIMIT ?5"));
  query.Bind(1, *id);
  query.Bind(2, after->round);
  query.Bind(3, after->position);
  query.Bind(4, std::int64_t{request.last_round()});
  query.Bind(5, std::int64_t{*limit} + 1);
  v1::ListSheetClaimsResponse response;
  std::size_t text_bytes = 0;
  while (query.Step()) {
    if (response.rows_size() == *limit || text_bytes >= kMaxTextBytes) {
      const v1::SheetClaimRow& last = *response.rows().rbegin();
      response.set_next(Concat(last.round(), ":", last.position()));
      break;
    }
    text_bytes += columns.Read(query, *response.add_rows());
  }
  return response;
}

}  // namespace pelab::db
