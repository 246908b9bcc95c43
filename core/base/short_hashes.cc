#include "core/base/short_hashes.h"

#include <algorithm>
#include <iterator>

namespace pelab {
namespace {

constexpr std::size_t kDigits = 64;

bool IsDigit(char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); }
bool IsOfWord(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

bool IsHash(std::string_view word) {
  return word.size() == kDigits && std::all_of(word.begin(), word.end(), IsDigit);
}

// Calls `visit` with each word of the text and with each piece between two words.
template <typename Visit>
void ForEachWord(std::string_view text, const Visit& visit) {
  std::size_t begin = 0;
  while (begin < text.size()) {
    const bool word = IsOfWord(text[begin]);
    std::size_t end = begin;
    while (end < text.size() && IsOfWord(text[end]) == word) ++end;
    visit(text.substr(begin, end - begin));
    begin = end;
  }
}

std::size_t SameDigits(std::string_view a, std::string_view b) {
  return static_cast<std::size_t>(std::mismatch(a.begin(), a.end(), b.begin()).first - a.begin());
}

}  // namespace

void ShortHashes::Add(std::string_view text) {
  ForEachWord(text, [&](std::string_view word) {
    if (!IsHash(word)) return;
    const auto [at, is_new] = hashes_.emplace(word);
    if (!is_new) return;
    // In this order, the hash that has the most digits in common with one is beside it.
    const auto after = std::next(at);
    if (at != hashes_.begin()) digits_ = std::max(digits_, SameDigits(*std::prev(at), *at) + 1);
    if (after != hashes_.end()) digits_ = std::max(digits_, SameDigits(*after, *at) + 1);
  });
}

std::string ShortHashes::In(std::string_view text) const {
  std::string out;
  ForEachWord(text, [&](std::string_view word) {
    out += IsHash(word) && hashes_.contains(word) ? word.substr(0, digits_) : word;
  });
  return out;
}

}  // namespace pelab
