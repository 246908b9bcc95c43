// Whole lists from a reader's pages, for answers that combine all jobs of a sweep. Not thread-safe,
// like the reader.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/db/read/all_rows.h"
#include "core/db/read/reader.h"
#include "core/results/job_list.h"
#include "server/http/query.h"

namespace pelab::http {

// One answer combines at most this many jobs.
inline constexpr std::size_t kMostJobs = 20'000;

// Names of the parameters that select jobs of a sweep: "state", "pe", "pe_label", "task",
// "protocol", "seed", "job", "where".
extern const std::vector<std::string> kJobFilters;
absl::StatusOr<v1::JobFilter> ReadFilter(const std::string& sweep, const Query& query);

// INVALID_ARGUMENT if there are more than kMostJobs.
absl::StatusOr<results::JobList> AllJobs(db::Reader& reader, const v1::JobFilter& filter);

// Reads every page of `(reader.*list)(request)` and passes each to `on_page`.
template <typename Request, typename Response, typename OnPage>
absl::Status ForEachPage(db::Reader& reader,
                         absl::StatusOr<Response> (db::RowReader::*list)(const Request&),
                         const v1::JobFilter& filter, OnPage on_page) {
  Request request;
  *request.mutable_filter() = filter;
  return db::ForEachPage(reader, list, std::move(request), std::move(on_page));
}

// All rows of such a list.
template <typename Row, typename Request, typename Response>
absl::StatusOr<std::vector<Row>> AllRows(
    db::Reader& reader, absl::StatusOr<Response> (db::RowReader::*list)(const Request&),
    const v1::JobFilter& filter) {
  Request request;
  *request.mutable_filter() = filter;
  return db::AllRows<Row>(reader, list, request);
}

}  // namespace pelab::http
