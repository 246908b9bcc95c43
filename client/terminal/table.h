// Aligned columns.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "client/terminal/style.h"

namespace pelab::render {

struct Column {
  enum class Align { kLeft, kRight };
  std::string title;
  Align align = Align::kLeft;
  bool shrinks = false;  // its texts go on below where the table is wider than the terminal
};

// A table with a line of titles. Cells are data: they are escaped. Not thread-safe.
class Table {
 public:
  // A cell that goes on below has at most `most_lines` lines.
  static constexpr std::size_t kFewLines = 3;
  static constexpr std::size_t kAllLines = 1000;
  explicit Table(std::vector<Column> columns, std::size_t most_lines = kFewLines)
      : columns_(std::move(columns)), most_lines_(most_lines) {}

  // As many cells as columns; `sgr` colours the whole row.
  void AddRow(std::vector<std::string> cells, std::string sgr = "");
  bool empty() const { return rows_.empty(); }

  // Lines that end with a newline and have no trailing spaces; "…" where a cell has more than it
  // may. Words are broken only where the table would not fit otherwise. Wider than the style's width only where columns that do not shrink need it: a number is
  // never cut.
  std::string Render(const Style& style) const;

 private:
  struct Row {
    std::vector<std::string> cells;
    std::string sgr;
  };
  // Columns of the terminal that a column takes: where its words are broken, where it goes on below
  // but every word is whole, and where there is room.
  struct Room {
    int least = 0;
    int words = 0;
    int most = 0;
  };
  struct Layout {
    int gap = 2;  // between columns
    std::vector<int> widths;
  };
  Room Need(std::size_t column) const;
  Layout LayOut(int limit) const;
  // How it fits into `limit` with its words whole, or broken where `least`; nullopt where it does
  // not.
  static std::optional<Layout> Fit(const std::vector<Room>& rooms, int limit, int gap, bool least);
  std::string RowLines(const std::vector<std::string>& cells, const Layout& layout) const;

  std::vector<Column> columns_;
  std::size_t most_lines_;
  std::vector<Row> rows_;
};

}  // namespace pelab::render
