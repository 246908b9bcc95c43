// Reading lists that come in pages.
#pragma once

#include <functional>
#include <future>
#include <string>
#include <unordered_set>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace pelab::client {

// The cursors that led to the pages of one list so far. Not thread-safe.
class Cursors {
 public:
  // INTERNAL if `next` came before: the pages repeat, and the list would never end.
  absl::Status Add(const std::string& next) {
    if (seen_.insert(next).second) return absl::OkStatus();
    return absl::InternalError("the list does not go on: the coordinator repeats its pages");
  }

 private:
  std::unordered_set<std::string> seen_;
};

// Calls `fetch(after) -> StatusOr<Response>` for each page and passes the page to
// `on_page(response) -> Status`. While `on_page` runs, another thread fetches the next page; at
// most one page is fetched at a time. Ends with the first error; INTERNAL if pages repeat.
template <typename Fetch, typename OnPage>
absl::Status ReadPages(Fetch fetch, OnPage on_page) {
  auto page = fetch(std::string());
  Cursors cursors;
  while (page.ok() && !page->next().empty()) {
    if (absl::Status added = cursors.Add(page->next()); !added.ok()) return added;
    const std::string after = page->next();
    decltype(page) next = absl::UnknownError("");
    // std::function: one type of task for all lists, so that futures are compiled once.
    auto fetched = std::async(std::function<void()>([&] { next = fetch(after); }));
    absl::Status status = on_page(*page);
    fetched.get();
    page = std::move(next);
    if (!status.ok()) return status;
  }
  return page.ok() ? on_page(*page) : page.status();
}

}  // namespace pelab::client
