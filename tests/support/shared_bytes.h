// The content of a file in pages that copies share until one of them is written, so that a copy of
// a large file costs little. Not thread-safe.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

namespace pelab {

class SharedBytes {
 public:
  std::size_t size() const { return size_; }
  void clear() { resize(0); }

  // Bytes that are added are zero.
  void resize(std::size_t size) {
    if (size < size_ && size % kPage != 0) {  // what is cut off is zero when the file grows again
      Page& last = Own(size / kPage);
      std::fill(last.begin() + size % kPage, last.end(), '\0');
    }
    pages_.resize((size + kPage - 1) / kPage);
    size_ = size;
  }

  // Copies up to `size` bytes from `offset` on, and returns how many there were.
  std::size_t Read(std::size_t offset, char* to, std::size_t size) const {
    const std::size_t end = std::min(size_, offset + size);
    for (std::size_t at = offset; at < end;) {
      const std::size_t count = std::min(kPage - at % kPage, end - at);
      if (const auto& page = pages_[at / kPage]) {
        std::memcpy(to + (at - offset), page->data() + at % kPage, count);
      } else {
        std::memset(to + (at - offset), 0, count);
      }
      at += count;
    }
    return end > offset ? end - offset : 0;
  }

  void Write(std::size_t offset, const char* data, std::size_t size) {
    if (size_ < offset + size) resize(offset + size);
    for (std::size_t at = offset; at < offset + size;) {
      const std::size_t count = std::min(kPage - at % kPage, offset + size - at);
      std::memcpy(Own(at / kPage).data() + at % kPage, data + (at - offset), count);
      at += count;
    }
  }

  std::string ToString() const {
    std::string all(size_, '\0');
    Read(0, all.data(), size_);
    return all;
  }

 private:
  static constexpr std::size_t kPage = 4096;  // as SQLite's
  using Page = std::array<char, kPage>;

  // The page, which no copy shares from now on.
  Page& Own(std::size_t number) {
    auto& page = pages_[number];
    if (!page) {
      page = std::make_shared<Page>();  // of zeros
    } else if (page.use_count() > 1) {
      page = std::make_shared<Page>(*page);
    }
    return *page;
  }

  std::size_t size_ = 0;
  std::vector<std::shared_ptr<Page>> pages_;  // null: zeros
};

}  // namespace pelab
