#include "client/terminal/table.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "absl/strings/str_split.h"
#include "core/render/text.h"

namespace pelab::render {
namespace {

constexpr int kLongestWord = 10;  // longer words are broken if the table is too wide

// The lines of a cell, at most `most`. If text is cut, the last line ends in "…"; the last line
// of a label has it within.
std::vector<std::string> CellLines(const std::string& cell, int width, std::size_t most,
                                   bool is_label) {
  std::vector<std::string> lines;
  std::string_view rest = cell;
  const auto skip_spaces = [&rest] {
    rest.remove_prefix(std::min(rest.find_first_not_of(' '), rest.size()));
  };
  if (DisplayWidth(rest) > width) {
    rest = rest.substr(0, rest.find_last_not_of(' ') + 1);
    skip_spaces();
  }
  while (lines.size() + 1 < most && DisplayWidth(rest) > width) {
    const std::string wrapped = Wrap(rest, width);
    lines.push_back(wrapped.substr(0, wrapped.find('\n')));
    rest.remove_prefix(lines.back().size());
    skip_spaces();
  }
  lines.push_back(is_label ? TruncateMiddle(rest, width) : Truncate(rest, width));
  return lines;
}

int LongestWord(const std::string& text) {
  int longest = 0;
  for (const std::string& word : std::vector<std::string>(absl::StrSplit(text, ' '))) {
    longest = std::max(longest, DisplayWidth(word));
  }
  return longest;
}

}  // namespace

Table::Table(std::vector<Column> columns, std::size_t most_lines)
    : columns_(std::move(columns)), most_lines_(most_lines) {
  for (Column& column : columns_) column.title = Escape(column.title);
}

void Table::AddRow(std::vector<std::string> cells, std::string sgr) {
  for (std::string& cell : cells) cell = Escape(cell);
  cells.resize(columns_.size());
  rows_.push_back({std::move(cells), std::move(sgr)});
}

Table::Room Table::Need(std::size_t column) const {
  const Column& c = columns_[column];
  Room room{.words = LongestWord(c.title), .most = DisplayWidth(c.title)};
  for (const Row& row : rows_) {
    const std::string& cell = row.cells[column];
    room.most = std::max(room.most, DisplayWidth(cell));
    room.words = std::max(room.words, c.shrinks ? LongestWord(cell) : DisplayWidth(cell));
  }
  room.least = c.shrinks ? std::min(room.words, kLongestWord) : room.words;
  return room;
}

std::optional<Table::Layout> Table::Fit(const std::vector<Room>& rooms, int limit, int gap,
                                        bool least) {
  Layout layout{.gap = gap};
  int excess = gap * (static_cast<int>(rooms.size()) - 1) - limit;
  for (const Room& room : rooms) {
    layout.widths.push_back(room.most);
    excess += room.most;
  }
  while (excess > 0) {  // take one column from the widest that can still shrink
    int widest = -1;
    for (std::size_t i = 0; i < rooms.size(); ++i) {
      if (layout.widths[i] <= (least ? rooms[i].least : rooms[i].words)) continue;
      if (widest < 0 || layout.widths[i] > layout.widths[widest]) widest = static_cast<int>(i);
    }
    if (widest < 0) return std::nullopt;
    --layout.widths[widest];
    --excess;
  }
  return layout;
}

Table::Layout Table::LayOut(int limit) const {
  std::vector<Room> rooms;
  for (std::size_t i = 0; i < columns_.size(); ++i) rooms.push_back(Need(i));
  for (const bool least : {false, true}) {
    for (const int gap : {2, 1}) {
      if (auto layout = Fit(rooms, limit, gap, least)) return *std::move(layout);
    }
  }
  Layout layout{.gap = 1};
  for (const Room& room : rooms) layout.widths.push_back(room.least);
  return layout;
}

std::string Table::Render(const Style& style) const {
  const Layout layout = LayOut(style.width);
  std::vector<std::string> titles;
  for (const Column& column : columns_) titles.push_back(column.title);
  std::string out = Paint(style, "1", RowLines(titles, layout)) + "\n";
  for (const Row& row : rows_) {
    const std::string lines = RowLines(row.cells, layout);
    out += row.sgr.empty() ? lines : Paint(style, row.sgr, lines);
    out += "\n";
  }
  return out;
}

// The lines of one row, without the newline at the end.
std::string Table::RowLines(const std::vector<std::string>& cells, const Layout& layout) const {
  std::vector<std::vector<std::string>> texts;
  std::size_t lines = 1;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    texts.push_back(CellLines(cells[i], layout.widths[i], most_lines_, columns_[i].is_label));
    lines = std::max(lines, texts.back().size());
  }
  std::string text;
  for (std::size_t line = 0; line < lines; ++line) {
    if (line > 0) text += '\n';
    for (std::size_t i = 0; i < cells.size(); ++i) {
      if (i > 0) text.append(static_cast<std::size_t>(layout.gap), ' ');
      const std::string cell = line < texts[i].size() ? texts[i][line] : "";
      text += columns_[i].align == Column::Align::kRight ? PadLeft(cell, layout.widths[i])
                                                         : PadRight(cell, layout.widths[i]);
    }
    text.erase(text.find_last_not_of(' ') + 1);
  }
  return text;
}

}  // namespace pelab::render
