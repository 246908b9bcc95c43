// Tables with aligned columns.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "client/terminal/style.h"

namespace pelab::render {

struct Column {
  enum class Align { kLeft, kRight };
  std::string title;
  Align align = Align::kLeft;
  bool shrinks = false;  // its texts wrap if the table is wider than the terminal
  // Its texts identify the rows and may differ only at their ends. Where a text is cut, its last
  // line ends with the end of the text.
  bool is_label = false;
};
// A column of labels, which shrinks.
inline Column LabelColumn(std::string title, Column::Align align = Column::Align::kLeft) {
  return {std::move(title), align, true, true};
}

// A table with a header line. Cells and titles may be data, so they are escaped. Not thread-safe.
class Table {
 public:
  // A wrapped cell has at most `most_lines` lines.
  static constexpr std::size_t kFewLines = 3;
  static constexpr std::size_t kAllLines = 1000;
  explicit Table(std::vector<Column> columns, std::size_t most_lines = kFewLines);

  // `cells` has one entry per column; `sgr` colors the whole row.
  void AddRow(std::vector<std::string> cells, std::string sgr = "");
  bool empty() const { return rows_.empty(); }

  // Lines end with a newline and have no trailing spaces. A cell that needs more lines than
  // allowed ends in "…"; a label has it within its last line. Words are broken only if the
  // table would not fit otherwise. The table is wider than the style's width only if columns
  // that do not shrink need it: a number is never cut.
  std::string Render(const Style& style) const;

 private:
  struct Row {
    std::vector<std::string> cells;
    std::string sgr;
  };
  // The width that a column needs: with broken words, with whole words but wrapped, and on one
  // line.
  struct Room {
    int least = 0;
    int words = 0;
    int most = 0;
  };
  struct Layout {
    int gap = 2;  // spaces between columns
    std::vector<int> widths;
  };
  Room Need(std::size_t column) const;
  Layout LayOut(int limit) const;
  // Column widths that fit into `limit`, with whole words, or with broken words if `least` is set;
  // nullopt if nothing fits.
  static std::optional<Layout> Fit(const std::vector<Room>& rooms, int limit, int gap, bool least);
  std::string RowLines(const std::vector<std::string>& cells, const Layout& layout) const;

  std::vector<Column> columns_;
  std::size_t most_lines_;
  std::vector<Row> rows_;
};

}  // namespace pelab::render
