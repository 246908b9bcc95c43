// Reading lists that come in pages.
#pragma once

#include <future>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace pelab::client {

// Calls `fetch(after) -> StatusOr<Response>` for each page and passes the page to
// `on_page(response) -> Status`. While `on_page` runs, another thread fetches the next page; at
// most one page is fetched at a time. Ends with the first error.
template <typename Fetch, typename OnPage>
absl::Status ReadPages(Fetch fetch, OnPage on_page) {
  auto page = fetch(std::string());
  while (page.ok() && !page->next().empty()) {
    auto next = std::async(fetch, page->next());
    absl::Status status = on_page(*page);
    page = next.get();
    if (!status.ok()) return status;
  }
  return page.ok() ? on_page(*page) : page.status();
}

}  // namespace pelab::client
