// The pages and what they load, in this program itself. Thread-safe.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace pelab::http {

struct Page {
  std::string content_type;
  std::string etag;        // with its quotes
  std::string_view bytes;  // these two for the program's life
  std::string_view gzip;
};

// "/", "/sweeps/3", "/jobs/17", "/workers", "/assets/charts.js"; nullptr where there is none.
const Page* FindPage(const std::vector<std::string>& path);

}  // namespace pelab::http
