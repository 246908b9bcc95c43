// Whole lists from a reader's pages. Not thread-safe, like the reader.
#pragma once

#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/base/status.h"
#include "core/db/read/reader.h"

namespace pelab::db {

// Reads every page of `(reader.*list)(request)`, from the first on, and passes each to `on_page`.
template <typename Request, typename Response, typename OnPage>
absl::Status ForEachPage(RowReader& reader,
                         absl::StatusOr<Response> (RowReader::*list)(const Request&),
                         Request request, OnPage on_page) {
  request.mutable_page()->set_limit(kMaxPage);
  do {
    PELAB_ASSIGN_OR_RETURN(Response page, (reader.*list)(request));
    request.mutable_page()->set_after(page.next());
    on_page(page);
  } while (!request.page().after().empty());
  return absl::OkStatus();
}

// All rows of such a list.
template <typename Row, typename Request, typename Response>
absl::StatusOr<std::vector<Row>> AllRows(
    RowReader& reader, absl::StatusOr<Response> (RowReader::*list)(const Request&),
    const Request& request) {
  std::vector<Row> rows;
  const absl::Status status = ForEachPage(reader, list, request, [&rows](const Response& page) {
    rows.insert(rows.end(), page.rows().begin(), page.rows().end());
  });
  if (!status.ok()) return status;
  return rows;
}

}  // namespace pelab::db
