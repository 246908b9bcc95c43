#include "client/render/table.h"

#include <algorithm>
#include <numeric>

#include "core/render/text.h"

namespace pelab::render {
namespace {

constexpr int kGap = 2;
constexpr int kMinShrunk = 8;

std::string Line(const std::vector<std::string>& cells, const std::vector<Column>& columns,
                 const std::vector<int>& widths) {
  std::string line;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    if (i > 0) line.append(kGap, ' ');
    const std::string cell = Truncate(cells[i], widths[i]);
    line += columns[i].align == Column::Align::kRight ? PadLeft(cell, widths[i])
                                                      : PadRight(cell, widths[i]);
  }
  line.erase(line.find_last_not_of(' ') + 1);
  return line;
}

}  // namespace

void Table::AddRow(std::vector<std::string> cells, std::string sgr) {
  for (std::string& cell : cells) cell = Escape(cell);
  cells.resize(columns_.size());
  rows_.push_back({std::move(cells), std::move(sgr)});
}

std::vector<int> Table::Widths(int limit) const {
  std::vector<int> widths;
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    int width = DisplayWidth(columns_[i].title);
    for (const Row& row : rows_) width = std::max(width, DisplayWidth(row.cells[i]));
    widths.push_back(width);
  }
  int excess = std::accumulate(widths.begin(), widths.end(), 0) +
               kGap * (static_cast<int>(widths.size()) - 1) - limit;
  while (excess > 0) {  // one column off the widest that may shrink
    int widest = -1;
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      if (!columns_[i].shrinks || widths[i] <= kMinShrunk) continue;
      if (widest < 0 || widths[i] > widths[widest]) widest = static_cast<int>(i);
    }
    if (widest < 0) break;
    --widths[widest];
    --excess;
  }
  return widths;
}

std::string Table::Render(const Style& style) const {
  const std::vector<int> widths = Widths(style.width);
  std::vector<std::string> titles;
  for (const Column& column : columns_) titles.push_back(column.title);
  std::string out = Paint(style, "1", Line(titles, columns_, widths)) + "\n";
  for (const Row& row : rows_) {
    const std::string line = Line(row.cells, columns_, widths);
    out += row.sgr.empty() ? line : Paint(style, row.sgr, line);
    out += "\n";
  }
  return out;
}

}  // namespace pelab::render
