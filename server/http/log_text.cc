#include "server/http/log_text.h"

#include <algorithm>
#include <string>
#include <utility>

namespace pelab::http {
namespace {

struct Piece {
  std::uint64_t offset = 0;
  std::string text;
  std::uint64_t end() const { return offset + text.size(); }
};

bool Continues(char byte) { return (static_cast<unsigned char>(byte) & 0xC0) == 0x80; }

// How many bytes at the end belong to a character that is incomplete.
std::size_t UnfinishedBytes(const std::string& text) {
  for (std::size_t back = 1; back <= std::min<std::size_t>(3, text.size()); ++back) {
    const auto byte = static_cast<unsigned char>(text[text.size() - back]);
    if (Continues(static_cast<char>(byte))) continue;
    const std::size_t length = byte >= 0xF0 ? 4 : byte >= 0xE0 ? 3 : byte >= 0xC0 ? 2 : 1;
    return length > back ? back : 0;
  }
  return 0;
}

std::vector<Piece> Joined(const std::vector<v1::LogPart>& parts, std::uint64_t from) {
  std::vector<Piece> pieces;
  for (const v1::LogPart& part : parts) {
    const std::uint64_t skip = from > part.offset() ? from - part.offset() : 0;
    if (skip >= part.data().size()) continue;
    if (pieces.empty() || pieces.back().end() != part.offset() + skip) {
      pieces.push_back({.offset = part.offset() + skip});
    }
    pieces.back().text.append(part.data(), skip);
  }
  return pieces;
}

}  // namespace

render::Json LogJson(const std::vector<v1::LogPart>& parts, std::uint64_t offset,
                     std::uint64_t tail) {
  std::uint64_t end = offset;
  for (const v1::LogPart& part : parts) end = std::max(end, part.offset() + part.data().size());
  std::vector<Piece> pieces = Joined(parts, std::max(offset, end > tail ? end - tail : 0));
  if (!pieces.empty()) {
    std::string& last = pieces.back().text;
    last.resize(last.size() - UnfinishedBytes(last));
    end = pieces.back().end();
  }
  render::Json json = render::Json::array();
  for (Piece& piece : pieces) {
    // The tail may begin within a character.
    while (!piece.text.empty() && piece.offset > offset && Continues(piece.text.front())) {
      piece.text.erase(0, 1);
      ++piece.offset;
    }
    json.push_back({{"offset", piece.offset}, {"text", std::move(piece.text)}});
  }
  return {
      {"attempt", parts.empty() ? render::Json(nullptr) : render::Json(parts.front().attempt())},
      {"parts", std::move(json)},
      {"next_offset", end}};
}

}  // namespace pelab::http
