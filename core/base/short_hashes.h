// Shortens SHA-256 hashes in texts for people. As thread-safe as a container.
#pragma once

#include <cstddef>
#include <set>
#include <string>
#include <string_view>

namespace pelab {

class ShortHashes {
 public:
  // Notes the hashes in the text: words of 64 lower-case hexadecimal digits.
  void Add(std::string_view text);
  // The text with each hash cut to its first 8 digits, or to as many more as it takes to tell the
  // noted hashes apart.
  std::string In(std::string_view text) const;

 private:
  std::set<std::string, std::less<>> hashes_;
  std::size_t digits_ = 8;
};

}  // namespace pelab
