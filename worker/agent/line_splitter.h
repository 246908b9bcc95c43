// Splits a stream of bytes into lines of bounded length.
#pragma once

#include <cstddef>
#include <functional>
#include <string>

#include "absl/strings/string_view.h"

namespace pelab::agent {

// Not thread-safe.
class LineSplitter {
 public:
  explicit LineSplitter(std::size_t max_bytes) : max_bytes_(max_bytes) {}

  // Calls `on_line` for every line that `data` completes, without its newline. Returns false once a
  // line is longer than max_bytes; later bytes are discarded.
  bool Feed(absl::string_view data, const std::function<void(absl::string_view)>& on_line);

  // The bytes after the last newline.
  const std::string& rest() const { return rest_; }

 private:
  const std::size_t max_bytes_;
  std::string rest_;
  bool overflow_ = false;
};

}  // namespace pelab::agent
