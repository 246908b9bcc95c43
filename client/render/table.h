// Aligned columns.
#pragma once

#include <string>
#include <vector>

#include "client/render/style.h"

namespace pelab::render {

struct Column {
  enum class Align { kLeft, kRight };
  std::string title;
  Align align = Align::kLeft;
  bool shrinks = false;  // may be cut off with "…" where the table is wider than the terminal
};

// A table with a line of titles. Cells are data: they are escaped. Not thread-safe.
class Table {
 public:
  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}

  // As many cells as columns; `sgr` colours the whole row.
  void AddRow(std::vector<std::string> cells, std::string sgr = "");
  bool empty() const { return rows_.empty(); }

  // Lines that end with a newline and have no trailing spaces. Wider than the style's width only
  // where columns that do not shrink need it: a number is never cut.
  std::string Render(const Style& style) const;

 private:
  struct Row {
    std::vector<std::string> cells;
    std::string sgr;
  };
  std::vector<int> Widths(int limit) const;

  std::vector<Column> columns_;
  std::vector<Row> rows_;
};

}  // namespace pelab::render
