// Pages of rows that belong to jobs. Reads job by job, each through an index, so that the cost of a
// page depends only on its rows. Internal to core/db; call inside Connection::Read.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "core/base/strings.h"
#include "core/db/connection.h"
#include "core/db/raw_statement.h"
#include "core/db/read/filter.h"
#include "core/db/row_columns.h"

namespace pelab::db {

// The position at which a page continues: in this job, after the row whose order columns have these
// values.
struct PagePlace {
  std::int64_t job = 0;
  std::vector<Bind> after;
};

// A text as a part of a page position. Workers and imports choose some of the names, which may
// contain colons.
inline std::string PlaceText(const std::string& text) {
  return absl::StrReplaceAll(text, {{":", "%3a"}, {"%", "%25"}});
}

// Parses a page position. `kinds` says for each column that orders a job's rows whether it is text
// ('t', written by PlaceText) or a number ('n'). INVALID_ARGUMENT for a text that is not a
// position. The separator is a colon.
inline absl::StatusOr<PagePlace> ParsePlace(const std::string& text, std::string_view kinds) {
  PagePlace place;
  if (text.empty()) {
    for (const char kind : kinds) {
      place.after.push_back(kind == 't' ? Bind(std::string()) : Bind(std::int64_t{INT64_MIN}));
    }
    return place;
  }
  const std::vector<std::string> parts = absl::StrSplit(text, ':');
  bool ok = parts.size() == kinds.size() + 1 && ParseNumber(parts[0], &place.job);
  for (std::size_t i = 0; ok && i < kinds.size(); ++i) {
    const std::string& part = parts[i + 1];
    if (kinds[i] == 't') {
      place.after.emplace_back(absl::StrReplaceAll(part, {{"%3a", ":"}, {"%25", "%"}}));
      continue;
    }
    std::int64_t number = -1;  // -1 is also the layer of rows over all layers
    ok = part == "-1" || ParseNumber(part, &number);
    place.after.emplace_back(number);
  }
  if (ok) return place;
  return absl::InvalidArgumentError(Concat("page position \"", text, "\" is not one of an answer"));
}

// Reads one page of the rows of a view into a `Response`. `rest` is the query after the columns of
// the row, " FROM … WHERE … ORDER BY …". It selects a job's rows in order. Its parameters are ?1
// the job, ?2 whether all its rows are wanted, then the order columns of the position, then
// `extra`. `place_of` returns the text of a row's position after "job:".
template <typename Response, typename Request, typename PlaceOf>
absl::StatusOr<Response> PageOfJobs(Connection& db, const Request& request, std::string_view rest,
                                    std::string_view kinds, const PlaceOf& place_of,
                                    const std::vector<Bind>& extra = {}) {
  using Row = std::decay_t<decltype(Response().rows(0))>;
  const absl::StatusOr<int> limit = PageLimit(request.page());
  if (!limit.ok()) return limit.status();
  const absl::StatusOr<PagePlace> place = ParsePlace(request.page().after(), kinds);
  if (!place.ok()) return place.status();
  Response response;
  const RowColumns& columns = ColumnsOf<Row>();
  RawStatement query(db, Concat("SELECT ", columns.sql(), rest));
  query.BindAll(place->after, 3);
  query.BindAll(extra, 3 + static_cast<int>(kinds.size()));
  std::size_t text_bytes = 0;
  const absl::Status status = ForEachJob(db, request.filter(), place->job, [&](std::int64_t job) {
    query.Reset();
    query.Bind(1, job);
    query.Bind(2, std::int64_t{job != place->job});
    while (query.Step()) {
      if (response.rows_size() == *limit || text_bytes >= kMaxTextBytes) {
        const Row& last = response.rows(response.rows_size() - 1);
        response.set_next(Concat(last.job_id(), ":", place_of(last)));
        return false;
      }
      text_bytes += columns.Read(query, *response.add_rows());
    }
    return true;
  });
  if (!status.ok()) return status;
  return response;
}

}  // namespace pelab::db
