// Lists that come in pages.
#pragma once

#include <future>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace pelab::client {

// `fetch(after) -> StatusOr<Response>` page by page, each given to `on_page(response) -> Status`.
// While it is, the next one is fetched on another thread, never two at once. Ends with the first
// error.
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
