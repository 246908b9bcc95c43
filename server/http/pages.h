// The pages and the files that they load, built into this program. Thread-safe.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace pelab::http {

struct Page {
  std::string content_type;
  std::string etag;        // including its quotes
  std::string_view bytes;  // both views stay valid while the program runs
  std::string_view gzip;
};

// The page for "/", "/sweeps/3", "/jobs/17", "/workers" or "/assets/charts.js"; nullptr if there is
// none.
const Page* FindPage(const std::vector<std::string>& path);

}  // namespace pelab::http
