#include "worker/agent/line_splitter.h"

namespace pelab::agent {

bool LineSplitter::Feed(absl::string_view data,
                        const std::function<void(absl::string_view)>& on_line) {
  while (!overflow_ && !data.empty()) {
    const std::size_t newline = data.find('\n');
    const absl::string_view part = data.substr(0, newline);
    if (rest_.size() + part.size() > max_bytes_) {
      overflow_ = true;
      rest_.clear();
      break;
    }
    if (newline == absl::string_view::npos) {
      rest_.append(part.data(), part.size());
      break;
    }
    data.remove_prefix(newline + 1);
    if (rest_.empty()) {
      on_line(part);
      continue;
    }
    rest_.append(part.data(), part.size());
    std::string line;
    line.swap(rest_);
    on_line(line);
  }
  return !overflow_;
}

}  // namespace pelab::agent
