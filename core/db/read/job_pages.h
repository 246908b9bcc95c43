// Pages of rows that belong to jobs. Reads job by job, each through its own index, so that the cost
// of a page depends only on its rows. Internal to core/db; call inside Connection::Read.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_split.h"
#include "core/base/strings.h"
#include "core/db/connection.h"
#include "core/db/read/filter.h"

namespace pelab::db {

// A page ends when its rows contain this much text; a single row may have more.
inline constexpr std::size_t kMaxTextBytes = 1 << 20;

// The position at which a page continues: in this job, after the row whose order columns have these
// values.
struct PagePlace {
  std::int64_t job = 0;
  std::vector<Bind> after;
};

// Parses a page position. `kinds` says for each column that orders a job's rows whether it is text
// ('t') or a number ('n'). INVALID_ARGUMENT for a text that is not a position. The separator is a
// colon, which no text column of the views contains.
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
      place.after.emplace_back(part);
      continue;
    }
    std::int64_t number = -1;  // -1 is also the layer of rows over all layers
    ok = part == "-1" || ParseNumber(part, &number);
    place.after.emplace_back(number);
  }
  if (ok) return place;
  return absl::InvalidArgumentError(Concat("page position \"", text, "\" is not one of an answer"));
}

// Reads one page into a `Response`. `sql` selects a job's rows in order; its parameters are ?1 the
// job, ?2 whether all its rows are wanted, then the order columns of the position, then `extra`.
// `read` makes a row from a result, `place_of` returns the text of a row's position after "job:",
// and `full` can end a page before its limit.
template <typename Response, typename Request, typename Read, typename PlaceOf>
absl::StatusOr<Response> PageOfJobs(SQLite::Database& db, const Request& request, const char* sql,
                                    std::string_view kinds, const Read& read,
                                    const PlaceOf& place_of, const std::vector<Bind>& extra = {},
                                    const std::function<bool()>& full = nullptr) {
  const absl::StatusOr<int> limit = PageLimit(request.page());
  if (!limit.ok()) return limit.status();
  const absl::StatusOr<PagePlace> place = ParsePlace(request.page().after(), kinds);
  if (!place.ok()) return place.status();
  Response response;
  SQLite::Statement query(db, sql);
  BindAll(query, place->after, 3);
  BindAll(query, extra, 3 + static_cast<int>(kinds.size()));
  const absl::Status status = ForEachJob(db, request.filter(), place->job, [&](std::int64_t job) {
    query.reset();
    query.bind(1, job);
    query.bind(2, job == place->job ? 0 : 1);
    while (query.executeStep()) {
      if (response.rows_size() == *limit || (full && full())) {
        const auto& last = response.rows(response.rows_size() - 1);
        response.set_next(Concat(last.job_id(), ":", place_of(last)));
        return false;
      }
      *response.add_rows() = read(query);
    }
    return true;
  });
  if (!status.ok()) return status;
  return response;
}

}  // namespace pelab::db
